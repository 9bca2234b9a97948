#include "kernels/cpu/RangeLengths.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/ParallelFor.h"

namespace faiss_bits::cpu {

namespace {

/// Vectors that are measured at a time.
constexpr idx_t kVectors = 4096;

/// Components that a thread reads between two calls of the interrupt hook:
/// about 20 ms.
constexpr idx_t kValuesPerRegion = 1 << 26;

/// Of the vectors begin .. begin + count - 1: the terms that packing makes,
/// some tiles at a time.
template <class T>
void measurePacked(
        const Setup<T>& setup,
        idx_t begin,
        idx_t count,
        Lengths<T>& lengths) {
    const idx_t chunk = 4 * setup.common.tileVectors;
    AlignedBuffer<T> panels(chunk * setup.depth), terms(chunk);
    for (idx_t from = 0; from < count; from += chunk) {
        PackJob<T> job;
        job.rows = setup.vectors;
        job.begin = begin + from;
        job.count = std::min(chunk, count - from);
        job.depth = setup.depth;
        job.panels = panels.get();
        job.terms = terms.get();
        setup.common.packVectors(job, setup.metric);
        noteLengths(
                lengths,
                setup.metric,
                setup.vectors,
                setup.depth,
                job.begin,
                job.count,
                job.terms);
    }
}

/// The same by a scan for one query, which is less work and takes nothing.
template <class T>
void measureScanned(
        const Setup<T>& setup,
        const AlignedBuffer<T>& query,
        idx_t begin,
        idx_t count,
        Lengths<T>& lengths) {
    // No key is below the filter.
    T filter = -std::numeric_limits<T>::infinity();
    T zero = 0, largestSquare = 0;
    RowState state = RowState::Below;
    std::vector<RangeHit<T>> none;
    Sink<T> sink;
    sink.kind = SinkKind::Range;
    sink.filter = sink.limit = &filter;
    sink.queryTerm = &zero;
    sink.state = &state;
    sink.hits = &none;
    ScanJob<T> job;
    job.queries = query.get();
    job.rows = 1;
    job.vectors = setup.vectors;
    job.begin = job.firstId = begin;
    job.end = begin + count;
    job.depth = setup.depth;
    job.power = setup.power;
    job.sink = &sink;
    job.largestSquare = &largestSquare;
    setup.kernels.scanDirect(job);
    if (std::isfinite(largestSquare)) {
        raiseTo(lengths.largestSquare, largestSquare);
    } else { // a vector with NaN hides the others
        measurePacked(setup, begin, count, lengths);
    }
}

} // namespace

template <class T>
void measureLengths(const Setup<T>& setup, Lengths<T>& lengths) {
    const bool isProduct = setup.metric == KernelMetric::Product;
    if (!isProduct && setup.metric != KernelMetric::Cosine) {
        return;
    }
    const idx_t stride = roundUp(setup.depth, setup.common.lanes);
    AlignedBuffer<T> zeros(stride);
    std::fill_n(zeros.get(), stride, T(0));
    const idx_t n = setup.numVectors;
    const idx_t parts = (n + kVectors - 1) / kVectors;
    const idx_t perRegion = *setup.interrupt ? setup.team *
                    std::max<idx_t>(1,
                                    kValuesPerRegion / kVectors / setup.depth)
                                             : parts;
    for (idx_t first = 0; first < parts; first += perRegion) {
        if (first > 0) {
            setup.callInterrupt();
        }
        parallelFor(
                setup.team,
                setup.team,
                std::min(perRegion, parts - first),
                [&](idx_t i, int) {
                    const idx_t begin = (first + i) * kVectors;
                    const idx_t count = std::min(kVectors, n - begin);
                    if (isProduct) {
                        measureScanned(setup, zeros, begin, count, lengths);
                    } else {
                        measurePacked(setup, begin, count, lengths);
                    }
                });
    }
}

template void measureLengths(const Setup<float>&, Lengths<float>&);
template void measureLengths(const Setup<double>&, Lengths<double>&);

} // namespace faiss_bits::cpu
