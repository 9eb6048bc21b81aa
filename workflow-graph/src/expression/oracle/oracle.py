"""Evaluates expressions, one JSON object a line: Python's grammar and operators, and before them what rule G36 decides otherwise."""
import ast, json, math, operator, re, sys


class Missing:
    pass


MISSING = Missing()
HIVE = False


def fail(*_):
    raise ValueError("G36")


def there(value):
    return fail() if value is MISSING else value


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def fits(value):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not -2**63 <= value < 2**63:
        fail()
    if isinstance(value, float) and not math.isfinite(value):
        fail()
    return value


def truth(value):
    there(value)
    return value if isinstance(value, bool) or HIVE else fail()


def equal(a, b):
    a, b = (None if v is MISSING and not HIVE else there(v) for v in (a, b))
    if is_number(a) and is_number(b):
        return a == b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def order(a, b):
    there(a), there(b)
    if is_number(a) and is_number(b) or isinstance(a, str) and isinstance(b, str):
        return (a > b) - (a < b)
    if isinstance(a, list) and isinstance(b, list):
        for x, y in zip(a, b):
            if not equal(x, y):
                return order(x, y)
        return (len(a) > len(b)) - (len(a) < len(b))
    fail()


def contained(part, whole):
    there(part), there(whole)
    if isinstance(whole, list):
        return any(equal(item, part) for item in whole)
    return part in whole


COMPARE = {
    ast.Eq: equal, ast.NotEq: lambda a, b: not equal(a, b), ast.Is: equal, ast.IsNot: lambda a, b: not equal(a, b),
    ast.Lt: lambda a, b: order(a, b) < 0, ast.LtE: lambda a, b: order(a, b) <= 0,
    ast.Gt: lambda a, b: order(a, b) > 0, ast.GtE: lambda a, b: order(a, b) >= 0,
    ast.In: contained, ast.NotIn: lambda a, b: not contained(a, b),
}
ARITHMETIC = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}


def arithmetic(kind, a, b):
    there(a), there(b)
    joins = kind is ast.Add and (isinstance(a, str) and isinstance(b, str) or isinstance(a, list) and isinstance(b, list))
    if not joins and not (is_number(a) and is_number(b)):
        fail()
    return fits(ARITHMETIC[kind](a, b))


def step(whole, key, guarded):
    if whole is MISSING or whole is None:
        return MISSING
    if isinstance(whole, dict) and isinstance(key, str):
        return whole.get(key, MISSING)
    if isinstance(whole, (list, str)) and isinstance(key, int) and not isinstance(key, bool):
        try:
            return whole[key]
        except IndexError:
            return MISSING
    return MISSING if guarded else fail()


def best(function, arguments):
    items = arguments[0] if len(arguments) == 1 else list(arguments)
    if not isinstance(items, list):
        fail()
    if len(items) > 1:
        for item in items:
            order(item, items[0])
    return function(items)


def as_sorted(value):
    if isinstance(value, list):
        return [as_sorted(item) for item in value]
    if isinstance(value, dict):
        return {key: as_sorted(value[key]) for key in sorted(value)}
    return value


def number(value):
    return value if is_number(value) else fail()


def text(value):
    return value if isinstance(value, str) else fail()


def typed(kind, value):
    return value if isinstance(value, kind) else fail()


def ascii_only(function, value):
    return fits(function(value))


FUNCTIONS = {
    "len": lambda v: len(v), "str": lambda v: str(as_sorted(v)), "int": lambda v: ascii_only(int, v),
    "float": lambda v: ascii_only(float, v), "bool": lambda v: bool(v), "lower": lambda v: text(v).lower(),
    "upper": lambda v: text(v).upper(), "strip": lambda v, *c: text(v).strip(*map(text, c)),
    "contains": lambda whole, part: contained(part, whole), "starts_with": lambda v, p: text(v).startswith(text(p)),
    "ends_with": lambda v, p: text(v).endswith(text(p)), "matches": lambda v, p: bool(re.search(p.replace("$", r"\Z"), text(v))),
    "keys": lambda v: sorted(typed(dict, v)), "values": lambda v: [v[key] for key in sorted(typed(dict, v))],
    "min": lambda *v: best(min, v), "max": lambda *v: best(max, v),
    "sum": lambda v: fits(sum(number(item) for item in typed(list, v))),
    "round": lambda v, *d: fits(round(number(v), *d)), "abs": lambda v: fits(abs(number(v))),
    "any": lambda v: any(truth(item) for item in typed(list, v)), "all": lambda v: all(truth(item) for item in typed(list, v)),
}


def has(node, scope):
    whole = find(node[0], scope, True)
    return (step(whole, there(find(node[1], scope)), True) if len(node) > 1 else whole) is not MISSING


def call(name, nodes, scope, guarded):
    if name == "has":
        return has(nodes, scope)
    if name == "default":
        value = find(nodes[0], scope, True)
        return find(nodes[1], scope, guarded) if value is MISSING or value is None else value
    if name == "get":
        whole = find(nodes[0], scope, not HIVE)
        if whole is MISSING and HIVE:
            fail()
        value = MISSING if whole is MISSING else step(whole, there(find(nodes[1], scope)), False)
        if value is MISSING:
            value = there(find(nodes[2], scope)) if len(nodes) > 2 else None
        return value
    return FUNCTIONS[name](*[there(find(node, scope)) for node in nodes])


def find(node, scope, guarded=False):
    match node:
        case ast.Constant():
            return fits(node.value)
        case ast.Name():
            return scope.get(node.id, MISSING)
        case ast.List() | ast.Tuple():
            return [there(find(item, scope)) for item in node.elts]
        case ast.Attribute():
            return step(find(node.value, scope, guarded), node.attr, guarded)
        case ast.Subscript():
            whole = find(node.value, scope, guarded)
            return MISSING if whole is MISSING else step(whole, there(find(node.slice, scope)), guarded)
        case ast.UnaryOp(op=ast.Not()):
            return not truth(find(node.operand, scope))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=9223372036854775808)):
            return -2**63
        case ast.UnaryOp(op=ast.USub()):
            return fits(-number(find(node.operand, scope)))
        case ast.UnaryOp(op=ast.UAdd()):
            return number(find(node.operand, scope))
        case ast.BinOp():
            return arithmetic(type(node.op), find(node.left, scope), find(node.right, scope))
        case ast.BoolOp():
            for value in node.values:
                last = truth(find(value, scope))
                if bool(last) == isinstance(node.op, ast.Or):
                    break
            return last
        case ast.IfExp():
            return find(node.body if truth(find(node.test, scope)) else node.orelse, scope, guarded)
        case ast.Compare():
            left = find(node.left, scope)
            for op, right in zip(node.ops, node.comparators):
                right = find(right, scope)
                if not COMPARE[type(op)](left, right):
                    return False
                left = right
            return True
        case ast.Call(func=ast.Name()):
            return call(node.func.id, node.args, scope, guarded)
        case ast.Call(func=ast.Attribute()):
            return call(node.func.attr, [node.func.value, *node.args], scope, guarded)
    fail()


for line in sys.stdin:
    asked = json.loads(line)
    HIVE = asked["hive"]
    try:
        value = there(find(ast.parse(asked["source"], mode="eval").body, asked["scope"]))
        answer = {"value": bool(value) if HIVE else as_sorted(value)}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
