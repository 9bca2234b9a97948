#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/common/Types.h"

namespace faiss_bits {

enum class FusedMetric : uint8_t { L2, InnerProduct, Cosine, L1, Linf, Lp };

/// Where a search selects from its distances (Yu et al. 2015, section 2.3).
enum class FusedVariant : uint8_t {
    Auto,
    /// After the first loop, as `Var1`, into a buffer of candidates a query
    /// that is cut to k when it is full: the fastest for most k; not in the
    /// paper.
    Buffered,
    Var1, ///< after the first loop: binary heap behind a vector pre-filter
    Var5, ///< after the fifth loop: a block of distances, 4-ary heap
    /// After the sixth loop: all distances of some queries; 4-ary heap, or a
    /// bisection and a sort where more than a quarter of the vectors is wanted.
    Var6,
    /// No packing: every vector is read once and met by all queries. Not in the
    /// paper. Chosen by the shape alone (1 or 2 queries, up to 4 from 384
    /// components on), as it rounds differently; the others agree on every bit.
    Direct,
};

/// A name as in plans and benches: "auto", "buffered", "var1", "var5", "var6",
/// "direct". fusedVariantOf throws Error for a name that it does not know.
const char* nameOf(FusedVariant variant);
FusedVariant fusedVariantOf(const std::string& name);

/// What a caller may force; zeros and empty: the cost model's choice. Blocks
/// are rounded up to whole tiles. A range search takes Buffered (candidates
/// under the radius are appended) and Direct.
struct FusedChoice {
    FusedVariant variant = FusedVariant::Auto;
    int queryBlock = 0;  ///< m_c: most queries packed at a time by a thread
    int vectorBlock = 0; ///< n_c: vectors packed at a time for all threads
    int depthBlock = 0;  ///< d_c: components packed at a time
    /// Instruction set, one of fusedTargets(); empty: the best that runs here.
    /// The environment's FAISS_BITS_CPU_TARGET stands in for an empty one.
    std::string target;
};

/// Constants of the cost model for one thread; section 2.6 of the paper. They
/// come from the file that the environment's FAISS_BITS_CPU_MACHINE names, or
/// are measured (about 50 ms) and written there if it does not exist yet: once
/// for a machine. Without that variable they are measured once in a process,
/// and a search that takes less is planned with typical ones, if nothing was
/// measured before it. A file that is not right is an Error of the search; one
/// that cannot be written is a warning on stderr, once a process.
struct FusedMachine {
    double operationsPerSecond = 0; ///< tau_f: multiply-adds count two
    double secondsPerValue = 0;     ///< tau_b: a value streamed from memory
    double secondsPerAccess = 0; ///< tau_l: a random access beyond cacheBytes
    double cacheBytes = 0;       ///< L2 of a core
    double sharedBytes = 0;      ///< last level
    int lanes = 1;               ///< floats in the vectors of tau_f
};
const FusedMachine& fusedMachine();
/// Has this process measured them yet?
bool fusedMachineIsMeasured();

/// How one search runs.
struct FusedPlan {
    FusedVariant variant = FusedVariant::Auto;
    int queryBlock = 0, vectorBlock = 0, depthBlock = 0;
    int tileQueries = 0, tileVectors = 0; ///< m_r, n_r of the micro-kernel
    bool acrossVectors = false; ///< threads share the vectors, not the queries
    /// Every block of queries has its own selection, which its thread finishes:
    /// where the packed vectors are one block.
    bool selectsByBlock = false;
    int groupPanels = 1; ///< tiles of vectors that a block of components visits
    int64_t bufferCapacity = 0; ///< candidates of a query before a cut
    int64_t firstCapacity = 0;  ///< candidates before the first cut
    int64_t batchQueries =
            0; ///< queries worked off at a time: bounds the memory
    int threads = 1;
    std::string target;
    double predictedSeconds = 0;
    /// Predictions of every variant that can run, in the order of the enum.
    std::vector<std::pair<FusedVariant, double>> predictions;
    size_t scratchBytes = 0;
};

/// One line: variant, blocks, target, threads and what the model predicts.
std::string toString(const FusedPlan& plan);

/// Instruction sets compiled in that this machine has, best first: "AVX3_ZEN4",
/// "AVX3", "AVX2", "SSE4", ..., "SCALAR" or "EMU128".
std::vector<std::string> fusedTargets();

} // namespace faiss_bits
