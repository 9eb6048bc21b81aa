//! Nothing: the tests of journals are the package's only target of interest.
