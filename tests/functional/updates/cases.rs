//! The prepared lock files, each with an update, the packages that it changes, and the peaks.

pub(super) struct Case {
    /// The versions in which the lock file differs from the oldest one.
    pub(super) prepared: &'static [&'static str],
    /// The values of `--update`.
    pub(super) updates: &'static [&'static str],
    /// The changes of packages that are named, and of others.
    pub(super) requested: &'static [&'static str],
    pub(super) along: &'static [&'static str],
    /// The tests whose peak changes, in bytes before and after. Each is the bytes of the package and
    /// those of its largest dependency.
    pub(super) peaks: &'static [(&'static str, u64, u64)],
}

const POOL_2: &str = "pool -> 0.1.2";
const RING_1: &str = "ring -> 1.1.0";
const RING_2: &str = "ring -> 1.2.0";

pub(super) const CASES: [Case; 25] = [
    // An exact version.
    Case {
        prepared: &[],
        updates: &["pool@0.1.1"],
        requested: &["pool 0.1.0 -> 0.1.1"],
        along: &[],
        peaks: &[("pool", 100_000, 200_000), ("ring", 1_100_000, 1_200_000)],
    },
    Case {
        prepared: &["pool -> 0.1.1"],
        updates: &["pool@0.1.2"],
        requested: &["pool 0.1.1 -> 0.1.2"],
        along: &[],
        peaks: &[("pool", 200_000, 300_000), ("ring", 1_200_000, 1_300_000)],
    },
    // The latest version that `0.1` allows.
    Case {
        prepared: &["wide -> 2.0.0"],
        updates: &["pool"],
        requested: &["pool 0.1.0 -> 0.1.3"],
        along: &[],
        peaks: &[("pool", 100_000, 150_000), ("ring", 1_100_000, 1_150_000)],
    },
    // It takes less memory.
    Case {
        prepared: &[POOL_2],
        updates: &["pool"],
        requested: &["pool 0.1.2 -> 0.1.3"],
        along: &[],
        peaks: &[("pool", 300_000, 150_000), ("ring", 1_300_000, 1_150_000)],
    },
    // It needs a newer version of another dependency of the package.
    Case {
        prepared: &["twice@1.0.0 -> 1.1.0"],
        updates: &["ring@1.1.0"],
        requested: &["ring 1.0.0 -> 1.1.0"],
        along: &["pool 0.1.0 -> 0.1.3"],
        peaks: &[("pool", 100_000, 150_000), ("ring", 1_100_000, 2_150_000)],
    },
    // The version that the lock file has is new enough.
    Case {
        prepared: &[POOL_2, "wide -> 2.0.0"],
        updates: &["ring@1.1.0"],
        requested: &["ring 1.0.0 -> 1.1.0"],
        along: &[],
        peaks: &[("ring", 1_300_000, 2_300_000)],
    },
    // It needs a new package.
    Case {
        prepared: &[POOL_2, "twice@2.0.0 -> 2.1.0"],
        updates: &["ring@1.2.0"],
        requested: &["ring 1.0.0 -> 1.2.0"],
        along: &["slab 1.1.0 (new)"],
        peaks: &[("ring", 1_300_000, 23_000_000)],
    },
    Case {
        prepared: &["twice@2.0.0 -> 2.1.0"],
        updates: &["ring"],
        requested: &["ring 1.0.0 -> 1.2.0"],
        along: &["pool 0.1.0 -> 0.1.3", "slab 1.1.0 (new)"],
        peaks: &[("pool", 100_000, 150_000), ("ring", 1_100_000, 23_000_000)],
    },
    // An older version, with which a package is not needed any more.
    Case {
        prepared: &[POOL_2, RING_2],
        updates: &["ring@1.0.0"],
        requested: &["ring 1.2.0 -> 1.0.0"],
        along: &["slab 1.1.0 (removed)"],
        peaks: &[("ring", 23_000_000, 1_300_000)],
    },
    Case {
        prepared: &[POOL_2, "left -> 1.1.0"],
        updates: &["pool@0.1.0"],
        requested: &["pool 0.1.2 -> 0.1.0"],
        along: &[],
        peaks: &[("pool", 300_000, 100_000), ("ring", 1_300_000, 1_100_000)],
    },
    // An older version that a dependent does not allow.
    Case {
        prepared: &[POOL_2, RING_1],
        updates: &["pool@0.1.1"],
        requested: &["pool 0.1.2 -> 0.1.1"],
        along: &["ring 1.1.0 -> 1.0.0"],
        peaks: &[("pool", 300_000, 200_000), ("ring", 2_300_000, 1_200_000)],
    },
    // A dependency of a dependency.
    Case {
        prepared: &[POOL_2, RING_2, "slab -> 1.0.0"],
        updates: &["slab"],
        requested: &["slab 1.0.0 -> 1.1.0"],
        along: &[],
        peaks: &[("ring", 13_000_000, 23_000_000)],
    },
    Case {
        prepared: &[POOL_2, RING_2, "wide -> 2.0.0"],
        updates: &["slab@1.0.0"],
        requested: &["slab 1.1.0 -> 1.0.0"],
        along: &[],
        peaks: &[("ring", 23_000_000, 13_000_000)],
    },
    // Two packages of which each version needs exactly one of the other.
    Case {
        prepared: &["pool -> 0.1.3"],
        updates: &["left@1.1.0"],
        requested: &["left 1.0.0 -> 1.1.0"],
        along: &["right 1.0.0 -> 1.1.0"],
        peaks: &[("left", 4_400_000, 5_500_000), ("right", 400_000, 500_000)],
    },
    Case {
        prepared: &["pool -> 0.1.3", "wide -> 2.0.0"],
        updates: &["right@1.1.0", "left@1.1.0"],
        requested: &["left 1.0.0 -> 1.1.0", "right 1.0.0 -> 1.1.0"],
        along: &[],
        peaks: &[("left", 4_400_000, 5_500_000), ("right", 400_000, 500_000)],
    },
    Case {
        prepared: &["pool -> 0.1.3", "twice@1.0.0 -> 1.1.0"],
        updates: &["left"],
        requested: &["left 1.0.0 -> 1.1.0"],
        along: &["right 1.0.0 -> 1.1.0"],
        peaks: &[("left", 4_400_000, 5_500_000), ("right", 400_000, 500_000)],
    },
    // Several updates, repeated and separated by commas.
    Case {
        prepared: &["twice@1.0.0 -> 1.1.0", "twice@2.0.0 -> 2.1.0"],
        updates: &["pool@0.1.2", "wide@2.0.0"],
        requested: &["pool 0.1.0 -> 0.1.2", "wide 1.0.0 -> 2.0.0"],
        along: &[],
        peaks: &[
            ("pool", 100_000, 300_000),
            ("ring", 1_100_000, 1_300_000),
            ("wide", 600_000, 700_000),
        ],
    },
    Case {
        prepared: &["pool -> 0.1.3", "twice@2.0.0 -> 2.1.0"],
        updates: &["twice@1.1.0,twice@2.0.0"],
        requested: &["twice 1.0.0 -> 1.1.0", "twice 2.1.0 -> 2.0.0"],
        along: &[],
        peaks: &[("twice_1", 10_000, 20_000), ("twice_2", 40_000, 30_000)],
    },
    // One of two versions of a package, and both.
    Case {
        prepared: &["pool -> 0.1.1", "wide -> 2.0.0"],
        updates: &["twice@2.1.0"],
        requested: &["twice 2.0.0 -> 2.1.0"],
        along: &[],
        peaks: &[("twice_2", 30_000, 40_000)],
    },
    Case {
        prepared: &["pool -> 0.1.3"],
        updates: &["twice"],
        requested: &["twice 1.0.0 -> 1.1.0", "twice 2.0.0 -> 2.1.0"],
        along: &[],
        peaks: &[("twice_1", 10_000, 20_000), ("twice_2", 30_000, 40_000)],
    },
    // A requirement that allows incompatible versions.
    Case {
        prepared: &["pool -> 0.1.1", "twice@2.0.0 -> 2.1.0"],
        updates: &["wide"],
        requested: &["wide 1.0.0 -> 2.0.0"],
        along: &[],
        peaks: &[("wide", 600_000, 700_000)],
    },
    Case {
        prepared: &["wide -> 2.0.0"],
        updates: &["wide@1.0.0"],
        requested: &["wide 2.0.0 -> 1.0.0"],
        along: &[],
        peaks: &[("wide", 700_000, 600_000)],
    },
    // A yanked version is not the latest one, but can be named.
    Case {
        prepared: &["pool -> 0.1.1"],
        updates: &["pulled@1.1.1"],
        requested: &["pulled 1.0.0 -> 1.1.1"],
        along: &[],
        peaks: &[("pulled", 70_000, 80_000)],
    },
    // The lock file is the same.
    Case {
        prepared: &["pool -> 0.1.3"],
        updates: &["pool", "wide@1.0.0"],
        requested: &[],
        along: &[],
        peaks: &[],
    },
    // Everything.
    Case {
        prepared: &["twice@1.0.0 -> 1.1.0"],
        updates: &["pool,ring,left,right", "wide", "twice"],
        requested: &[
            "left 1.0.0 -> 1.1.0",
            "pool 0.1.0 -> 0.1.3",
            "right 1.0.0 -> 1.1.0",
            "ring 1.0.0 -> 1.2.0",
            "twice 2.0.0 -> 2.1.0",
            "wide 1.0.0 -> 2.0.0",
        ],
        along: &["slab 1.1.0 (new)"],
        peaks: &[
            ("left", 4_400_000, 5_500_000),
            ("pool", 100_000, 150_000),
            ("right", 400_000, 500_000),
            ("ring", 1_100_000, 23_000_000),
            ("twice_2", 30_000, 40_000),
            ("wide", 600_000, 700_000),
        ],
    },
];
