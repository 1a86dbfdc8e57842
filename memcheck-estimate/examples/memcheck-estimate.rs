//! The estimator as a program of this workspace. In other workspaces the command writes a package
//! with the same `main`.

fn main() {
    memcheck_estimate::main();
}
