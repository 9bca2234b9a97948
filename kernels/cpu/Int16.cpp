#include "kernels/cpu/Int16.h"

#include "kernels/common/Error.h"
#include "kernels/cpu/CanonicalTypes.h"
#include "kernels/cpu/CertifiedPacked.h"

namespace faiss_bits::cpu {

namespace {

/// Lengths of rows are known well enough, and sums do not overflow.
constexpr int kMostDepth = 1 << 16;

} // namespace

template <class T>
bool isForInt16(const Setup<T>& setup, const Problem<T>& problem) {
    // What it is worth packing for: with fewer queries or vectors that takes
    // more than the tiles gain (measured, docs/design/cpu.md).
    constexpr idx_t kLeastQueries = 64, kLeastProducts = 3072;
    constexpr idx_t kLeastOfQuery = 26000;
    constexpr int kLeastDepth = 16;
    const Arithmetic wanted = problem.choice.arithmetic;
    const bool isKnown = isCertifiedPacked(setup, problem) &&
            setup.depth <= kMostDepth && int16KernelsFor(setup.target);
    BITS_THROW_IF_NOT_FMT(
            isKnown || wanted != Arithmetic::Int16,
            "choice.arithmetic = %s is for certified searches of float32, with "
            "L2 or inner product, up to %d components, packed, on an "
            "instruction set that has it",
            nameOf(wanted),
            kMostDepth);
    if (wanted != Arithmetic::Auto) {
        return wanted == Arithmetic::Int16;
    }
    const idx_t q = setup.numQueries, d = setup.depth;
    if (!isKnown || d < kLeastDepth || q < kLeastQueries ||
        q * d < kLeastProducts || setup.numVectors * (d - 10) < kLeastOfQuery) {
        return false;
    }
    // The processors whose float64 products are fast pack vectors slowly.
    return !canonicalKernelsFor<T>(setup.metric, setup.target)
                    .prefersAllPairs ||
            q * (d - 14) >= 100 * d;
}

void sweepByInt16(Setup<float>& setup) {
    setup.int16 = int16KernelsFor(setup.target);
    setup.common.packVectors = setup.int16.packVectors;
    setup.common.packQueries = setup.int16.packQueries;
    setup.kernels.runTiles = setup.metric == KernelMetric::L2
            ? setup.int16.runTilesL2
            : setup.int16.runTilesProduct;
    setup.kernels.scanDirect = nullptr;
}

template bool isForInt16(const Setup<float>&, const Problem<float>&);
template bool isForInt16(const Setup<double>&, const Problem<double>&);

} // namespace faiss_bits::cpu
