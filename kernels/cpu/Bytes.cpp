#include "kernels/cpu/Bytes.h"

#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/common/Error.h"
#include "kernels/cpu/CertifiedPacked.h"

namespace faiss_bits::cpu {

namespace {

/// Rows of a view that are spread over `count`.
std::vector<idx_t> spread(
        const RowView<float>& rows,
        idx_t count,
        idx_t wanted) {
    std::vector<idx_t> ids(wanted);
    for (idx_t i = 0; i < wanted; ++i) {
        const idx_t row = i * count / wanted;
        ids[i] = rows.ids ? rows.ids[row] : row;
    }
    return ids;
}

/// Of pairs of some queries and vectors: the share that bytes leave in doubt.
double shareInDoubt(const Setup<float>& setup, const ByteKernels& kernels) {
    const idx_t numQueries = 2 * setup.common.tileQueries;
    const idx_t numVectors = 4 * setup.common.tileVectors;
    const auto pack = [&](const RowView<float>& rows,
                          idx_t count,
                          idx_t wanted,
                          auto kernel,
                          AlignedBuffer<float>& panels) {
        const std::vector<idx_t> ids = spread(rows, count, wanted);
        AlignedBuffer<float> terms(wanted);
        panels.allocate(wanted * bytePanelDepth(setup.depth));
        PackJob<float> job;
        job.rows = {rows.data, rows.stride, ids.data()};
        job.count = wanted;
        job.depth = setup.depth;
        job.panels = panels.get();
        job.terms = terms.get();
        kernel(job, setup.metric);
    };
    AlignedBuffer<float> queries, vectors;
    pack(setup.queries,
         setup.numQueries,
         numQueries,
         setup.metric == KernelMetric::Product ? kernels.packQueriesProduct
                                               : kernels.packQueriesL2,
         queries);
    pack(setup.vectors,
         setup.numVectors,
         numVectors,
         kernels.packVectors,
         vectors);
    const idx_t inDoubt = kernels.countInDoubt(
            queries.get(),
            numQueries,
            vectors.get(),
            numVectors,
            setup.depth,
            setup.metric == KernelMetric::Product);
    return double(inDoubt) / double(numQueries * numVectors);
}

} // namespace

template <class T>
bool isForBytes(
        const Setup<T>& setup,
        const Problem<T>& problem,
        idx_t k,
        bool shapeOnly) {
    // A pair in doubt is as much work as 20 others and more.
    constexpr double kMostInDoubt = 0.03;
    // What it is worth packing for, and a sample.
    constexpr idx_t kLeastQueries = 64, kLeastVectors = 512;
    // Less leaves too much of a step empty.
    constexpr int kLeastDepth = 48;
    const Arithmetic wanted = problem.choice.arithmetic;
    const bool isKnown =
            isCertifiedPacked(setup, problem) && setup.depth <= kMostByteDepth;
    // Asked last, and not where the answer does not matter: the system has to
    // be asked for these instructions, and the process keeps what it gives.
    const auto hasKernels = [&] { return bool(byteKernelsFor(setup.target)); };
    BITS_THROW_IF_NOT_FMT(
            wanted != Arithmetic::Bytes || (isKnown && hasKernels()),
            "choice.arithmetic = %s is for certified searches of float32, with "
            "L2 or inner product, up to %d components, packed, on a machine "
            "with matrix instructions on bytes (AMX)",
            nameOf(wanted),
            kMostByteDepth);
    if (wanted != Arithmetic::Auto) {
        return wanted == Arithmetic::Bytes;
    }
    if (!isKnown || setup.numQueries < kLeastQueries ||
        setup.numVectors < kLeastVectors || setup.depth < kLeastDepth) {
        return false;
    }
    // Nanoseconds of a query: all pairs by bytes, and packing; candidates by
    // 16-bit integers, and canonical distances of some more than k (by
    // measurements of n = 8192 on a Xeon, docs/design/cpu_all_pairs.md).
    const double n = double(setup.numVectors), d = setup.depth;
    const double steps = std::ceil(d / kByteStep);
    const double rows = n / double(setup.numQueries) + 1;
    const double byBytes = n * (0.9 + 0.53 * steps + 7e-4 * d) + 3 * d * rows;
    const double byCandidates =
            n * (0.3 + 7.5e-3 * d) + double(k) * (2 + 0.11 * d);
    bool isWorth = byBytes <= byCandidates && hasKernels();
    if constexpr (std::is_same_v<T, float>) {
        isWorth = isWorth &&
                (shapeOnly ||
                 shareInDoubt(setup, byteKernelsFor(setup.target)) <=
                         kMostInDoubt);
    }
    return isWorth;
}

void sweepByBytes(Setup<float>& setup) {
    const ByteKernels kernels = byteKernelsFor(setup.target);
    setup.panelValues = bytePanelDepth(setup.depth);
    setup.common.packVectors = kernels.packVectors;
    if (setup.metric == KernelMetric::Product) {
        setup.common.packQueries = kernels.packQueriesProduct;
        setup.kernels.runTiles = kernels.runTilesProduct;
    } else {
        setup.common.packQueries = kernels.packQueriesL2;
        setup.kernels.runTiles = kernels.runTilesL2;
    }
    setup.kernels.scanDirect = nullptr;
    // Keys are whole, and no bound needs the terms.
    setup.metric = KernelMetric::Squares;
}

template bool isForBytes(
        const Setup<float>&,
        const Problem<float>&,
        idx_t,
        bool);
template bool isForBytes(
        const Setup<double>&,
        const Problem<double>&,
        idx_t,
        bool);

} // namespace faiss_bits::cpu
