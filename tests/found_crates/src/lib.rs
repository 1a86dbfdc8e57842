//! Empty: the package has only memory tests.
