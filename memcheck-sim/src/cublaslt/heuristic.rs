//! The algorithm of a product, and an ESTIMATE of its workspace.
//!
//! cuBLASLt does not document how it chooses. It documents that a product with a long inner dimension
//! can be computed in parts, whose sums are stored in the workspace in the type of the computation
//! (`CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE`). The estimate has as many parts as there are
//! multiprocessors for a tile of the output. The size of a tile and the shortest part are assumptions,
//! and no size was compared with a GPU's.

use std::ffi::c_int;

use memcheck_limits::cards::Card;

use super::problem::MatmulProblem;

/// The sides of a tile of the output.
const TILE: u64 = 128;
/// The shortest part of the inner dimension.
const PART: u64 = 512;
/// Schemes that store sums: `CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE` and `_OUTPUT_TYPE`.
const STORING: i64 = 2 | 4;

/// `cublasLtMatmulAlgo_t`, whose contents are the library's.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatmulAlgorithm {
    /// [`MARK`], the bytes of the workspace, the most that the program allowed, and zeros.
    data: [u64; 8],
}

/// Distinguishes an algorithm of the simulator from memory that is not one.
const MARK: u64 = 0x6d65_6d63_6865_636b;

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeuristicResult {
    pub(crate) algorithm: MatmulAlgorithm,
    pub(crate) workspace: usize,
    pub(crate) state: c_int,
    pub(crate) waves: f32,
    pub(crate) reserved: [c_int; 4],
}

impl MatmulAlgorithm {
    /// Returns the algorithm of a product that may use `limit` bytes of workspace.
    pub(super) fn of(problem: &MatmulProblem, card: &Card, limit: u64, schemes: i64) -> Self {
        let limit_of_sums = if schemes & STORING == 0 { 0 } else { limit };
        let workspace = workspace(problem, card, limit_of_sums);
        Self { data: [MARK, workspace, limit, 0, 0, 0, 0, 0] }
    }

    /// Returns whether the simulator made it.
    pub(super) fn is_valid(&self) -> bool {
        self.data[0] == MARK
    }

    /// The bytes of the workspace that it needs.
    pub(super) fn workspace(&self) -> u64 {
        self.data[1]
    }

    /// The most bytes that the program allowed when it asked for an algorithm.
    pub(super) fn limit(&self) -> u64 {
        self.data[2]
    }

    pub(super) fn result(self, problem: &MatmulProblem, card: &Card) -> HeuristicResult {
        HeuristicResult {
            algorithm: self,
            workspace: self.workspace() as usize,
            state: 0,
            waves: tiles(problem) as f32 / card.multiprocessors.max(1) as f32,
            reserved: [0; 4],
        }
    }
}

fn tiles(problem: &MatmulProblem) -> u64 {
    let sides = problem.m.div_ceil(TILE).saturating_mul(problem.n.div_ceil(TILE));
    sides.saturating_mul(problem.batch)
}

fn workspace(problem: &MatmulProblem, card: &Card, limit: u64) -> u64 {
    let outputs = problem.m.saturating_mul(problem.n).saturating_mul(problem.batch);
    let sums = outputs.saturating_mul(problem.bytes_of_sum());
    let free = u64::from(card.multiprocessors) / tiles(problem).max(1);
    // Below the limit, so that a workspace of the limit is one that the program has chosen.
    let most = limit.saturating_sub(1).checked_div(sums).unwrap_or(0);
    let parts = free.min(problem.k / PART).min(most);
    if parts < 2 { 0 } else { parts * sums }
}
