//! Sets of tools.

mod argument_of_self {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools]
    impl Orders {
        /// Refunds an order.
        #[tool]
        async fn refund(&self, order: Option<Self>) -> u64 {
            u64::from(order.is_some())
        }
    }
}

mod argument_of_type_parameter {
    use workflow_agent::{tool, tools};

    struct Orders<S>(S);

    #[tools]
    impl<S: Send + Sync + 'static> Orders<S> {
        /// Refunds an order.
        #[tool]
        async fn refund(&self, order: Vec<S>) -> u64 {
            order.len() as u64
        }
    }
}

mod attribute_twice {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools]
    impl Orders {
        /// Refunds an order.
        #[tool]
        #[tool(read_only)]
        async fn refund(&self, order: u64) -> u64 {
            order
        }
    }
}

mod attribute_without_list {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools]
    impl Orders {
        /// Refunds an order.
        #[tool = "refund"]
        async fn refund(&self, order: u64) -> u64 {
            order
        }
    }
}

mod constant {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools]
    impl Orders {
        /// No function.
        #[tool]
        const REFUND: u64 = 5;

        /// Refunds an order.
        #[tool]
        async fn refund(&self, order: u64) -> u64 {
            order
        }
    }
}

mod crate_at_a_method {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools]
    impl Orders {
        /// Refunds an order.
        #[tool(crate = workflow_agent)]
        async fn refund(&self, order: u64) -> u64 {
            order
        }
    }
}

mod lifetime {
    use workflow_agent::{tool, tools};

    struct Orders<'a>(&'a str);

    #[tools]
    impl<'a> Orders<'a> {
        /// Refunds an order.
        #[tool]
        async fn refund(&self, order: u64) -> u64 {
            order
        }
    }
}

mod method_not_async {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools]
    impl Orders {
        /// Refunds an order.
        #[tool]
        fn refund(&self, order: u64) -> u64 {
            order
        }
    }
}

mod method_type_parameter {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools]
    impl Orders {
        /// Refunds an order.
        #[tool]
        async fn refund<T>(&self, order: u64, _of: T) -> u64 {
            order
        }
    }
}

mod method_without_docs {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools]
    impl Orders {
        #[tool]
        async fn refund(&self, order: u64) -> u64 {
            order
        }
    }
}

mod mut_self {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools]
    impl Orders {
        /// Refunds an order.
        #[tool]
        async fn refund(&mut self, order: u64) -> u64 {
            order
        }
    }
}

mod name_of_another_method {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools]
    impl Orders {
        /// Refunds an order.
        #[tool(name = "pay")]
        async fn refund(&self, order: u64) -> u64 {
            order
        }

        /// Refunds an order.
        #[tool]
        async fn pay(&self, order: u64) -> u64 {
            order
        }
    }
}

mod of_a_trait {
    use workflow_agent::{tool, tools};

    struct Orders;

    trait Shop {
        fn refund(&self, order: u64) -> impl Future<Output = u64>;
    }

    #[tools]
    impl Shop for Orders {
        /// Refunds an order.
        #[tool]
        async fn refund(&self, order: u64) -> u64 {
            order
        }
    }
}

mod on_function {
    use workflow_agent::tools;

    #[tools]
    async fn weather(city: String) -> String {
        city
    }
}

mod self_arc {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools]
    impl Orders {
        /// Refunds an order.
        #[tool]
        async fn refund(self: std::sync::Arc<Self>, order: u64) -> u64 {
            order
        }
    }
}

mod self_by_value {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools]
    impl Orders {
        /// Refunds an order.
        #[tool]
        async fn refund(self, order: u64) -> u64 {
            order
        }
    }
}

mod two_of_one_name {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools]
    impl Orders {
        /// Refunds an order.
        #[tool]
        async fn refund(&self, order: u64) -> u64 {
            order
        }

        /// Refunds an order.
        #[tool(name = "refund")]
        async fn give_back(&self, order: u64) -> u64 {
            order
        }
    }
}

mod unknown_key {
    use workflow_agent::{tool, tools};

    struct Orders;

    #[tools(name = "orders")]
    impl Orders {
        /// Refunds an order.
        #[tool]
        async fn refund(&self, order: u64) -> u64 {
            order
        }
    }
}

mod without_tools {
    use workflow_agent::tools;

    struct Orders;

    #[tools]
    impl Orders {
        pub fn plain(&self) {}
    }
}

fn main() {}
