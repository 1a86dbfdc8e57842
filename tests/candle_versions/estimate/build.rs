//! Sets `candle_before` for each series of candle that is later than the locked version.

fn main() {
    let lock = "../Cargo.lock";
    println!("cargo::rerun-if-changed={lock}");
    println!("cargo::rustc-check-cfg=cfg(candle_before, values(\"0.10\", \"0.11\"))");
    let text = std::fs::read_to_string(lock).expect("a lock file");
    let (_, below) = text.split_once("name = \"candle-transformers\"\nversion = \"").expect("candle");
    let (version, _) = below.split_once('"').expect("a version");
    let series: u32 = version.split('.').nth(1).and_then(|it| it.parse().ok()).expect("a series");
    for later in [10, 11].into_iter().filter(|&later| series < later) {
        println!("cargo::rustc-cfg=candle_before=\"0.{later}\"");
    }
}
