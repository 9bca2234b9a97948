#include "kernels/knn/certified/Certified.h"

#include <algorithm>

#include "kernels/common/Error.h"
#include "kernels/knn/ByMetric.h"
#include "kernels/knn/Norms.h"
#include "kernels/knn/certified/CertifiedLaunch.h"
#include "kernels/knn/certified/QueryKernels.h"
#include "kernels/knn/nearest/FewDimsKnn.h"
#include "kernels/select/Select.h"

namespace faiss_bits {

namespace {

/// Rows with more candidates have several blocks each.
constexpr int kOneBlockCandidates = 256;

/// Entries that a list of the scan gets beside its k, if there is room: the
/// more, the fewer steps it takes.
constexpr size_t kWantedListEntries = 8192;
constexpr size_t kLeastListEntries = 4096;
/// Lists that are wanted however long they are.
constexpr size_t kLeastSlots = 128;

/// What a list gets at least where that lets kLeastSlots rows, or all, be
/// searched at once: one turn more costs more than some steps more. Of a step
/// that has as many vectors as all before about k pass the limit.
size_t fewestEntries(const FlatKnnProblem& p) {
    constexpr size_t kFewest = 512;
    const size_t keep = size_t(std::min<idx_t>(p.k, p.numVectors));
    return keep + std::max(kFewest, keep + keep / 4);
}

size_t wantedEntries(const FlatKnnProblem& p) {
    const size_t n = size_t(p.numVectors);
    return std::min(size_t(p.k), n) + std::min(kWantedListEntries, n);
}

/// Lists that scratch is asked for: many, so that a scan has enough to do where
/// vectors are few, in about 64 MiB.
size_t wantedSlots(const FlatKnnProblem& p) {
    constexpr size_t kEntries = size_t(1) << 23;
    return std::clamp(
            kEntries / wantedEntries(p), kLeastSlots, size_t(kMaxScanSlots));
}

/// Sets of equal vectors up to which they are worth it: a query meets a vector
/// of each set, eight lanes a pair, and where tiles of products meet all
/// vectors that takes longer a pair. By times of 1,024 rows (H200, us;
/// docs/design/flat_hard_data.md).
double worthySets(const FlatKnnProblem& p) {
    constexpr double kLeastOfSet = 4; // vectors, on average
    constexpr int kMostTiledK = 1024;
    const double n = double(p.numVectors);
    if (!isOfProducts(p.metric) || p.k > kMostTiledK) {
        return n / kLeastOfSet;
    }
    // Where k = 1 rows mostly have a limit: one step of tiles.
    const double tiles = p.k == 1 ? 55 + n * (0.0035 + 0.000088 * p.d)
                                  : 170 + n * (0.0067 + 0.000088 * p.d);
    const double table = 60 + n * 0.0019;
    const double set = 0.26 + 0.0018 * p.d;
    return std::clamp((tiles - table) / set, 0.0, n / kLeastOfSet);
}

bool isRowMajor(const FlatKnnProblem& p) {
    return p.queriesRowMajor || p.d == 1;
}

/// Queries whose own memory does not serve the canonical distances.
bool widensQueries(const FlatKnnProblem& p) {
    return !p.exactQueries &&
            (p.dataType != DataType::Float32 || !isRowMajor(p));
}

bool needsGreatestNorm(const FlatKnnProblem& p) {
    return p.metric == Metric::InnerProduct && !p.greatestNorm;
}

bool needsMaxima(const FlatKnnProblem& p) {
    return rowFactsOf(p.metric) != RowFacts::None && !p.rowMaxima;
}

/// Metrics whose candidates are found with what the queries were rounded to.
bool roundsQueries(const FlatKnnProblem& p) {
    return p.exactQueries &&
            (p.metric == Metric::L2 || p.metric == Metric::InnerProduct);
}

struct Launches {
    void (*rescore)(const CertifiedParams&, cudaStream_t);
    void (*scanAgain)(const ScanAgainParams&, int, cudaStream_t);
};

Launches launchesFor(Metric metric) {
    return byMetric(metric, []<Metric kMetric>() {
        return Launches{launchRescore<kMetric>, launchScanAgain<kMetric>};
    });
}

} // namespace

int candidatesFor(const FlatKnnProblem& p) {
    // The number of vectors within the bound of the k-th grows with k, and the
    // bound with d and with what the queries were rounded to.
    const idx_t k = p.k;
    const bool isFloat = p.dataType == DataType::Float32;
    idx_t margin = std::min<idx_t>(16, 7 + k) +
            k * (p.d + 128) / (isFloat ? 4096 : 1024);
    if (roundsQueries(p) && !isFloat) {
        margin += p.dataType == DataType::Float16 ? k / 4 : k;
    }
    idx_t candidates = k + std::min(margin, 2 * k + 16);
    // Selection is faster up to here, if that leaves what most queries need.
    // Uniform data, k = 2000: 48 do for d up to 256, and for hardly a query of
    // d = 768.
    const double needed = 16 + double(k) * p.d * p.d / (128 * 128 * 285);
    if (double(k) + needed <= kMaxSelectK) {
        candidates = std::min<idx_t>(candidates, kMaxSelectK);
    }
    const idx_t all = std::max<idx_t>(p.numVectors, 1);
    // Where nearly all are, all of them are: nothing is to be proved then,
    // unless an approximate distance is no number, and what is saved is more
    // than a search of all after the one of most.
    const bool areMost = candidates >= all - all / 8 &&
            (candidates > kMaxSelectK || all <= kMaxSelectK);
    candidates = areMost ? all : std::min(candidates, all);
    return int(std::min<idx_t>(candidates, INT32_MAX));
}

size_t leastListEntries(const FlatKnnProblem& p) {
    return size_t(std::min<idx_t>(p.k, p.numVectors)) + kLeastListEntries;
}

size_t wantedListEntries(const FlatKnnProblem& p, idx_t rows) {
    return searchesFewDimsAgain(p)
            ? 0
            : std::min(size_t(rows), wantedSlots(p)) * wantedEntries(p);
}

void CertifiedScratch::take(
        const FlatKnnProblem& p,
        int candidates,
        idx_t tileQueries,
        WorkspaceSlices& slices) {
    const size_t places = size_t(tileQueries) * candidates;
    keys = slices.take<float>(places);
    columns = slices.take<int32_t>(places);
    if (candidates > kOneBlockCandidates) {
        entries = slices.take<uint64_t>(places);
    }
    flags = slices.take<uint8_t>(2 * tileQueries);
    const size_t components = size_t(tileQueries) * p.d;
    if (widensQueries(p)) {
        exact = slices.take<float>(components);
    }
    if (roundsQueries(p) && candidates > 0) {
        rounded = slices.take<float>(components);
    }
    counts = slices.take<uint32_t>(kMaxScanSlots);
    limits = slices.take<uint64_t>(kMaxScanSlots);
}

void CertifiedScratch::takeFacts(
        const FlatKnnProblem& p,
        const ErrorBound& bound,
        WorkspaceSlices& slices) {
    if (bound.ofImages) {
        return;
    }
    if (needsGreatestNorm(p)) {
        if (!p.vectorNorms) {
            norms = slices.take<float>(p.numVectors);
        }
        greatestNorm = slices.take<float>(1);
    }
    if (needsMaxima(p)) {
        maxima = slices.take<RowMaxima>(1);
    }
}

void CertifiedScratch::takeAgain(
        const FlatKnnProblem& p,
        idx_t tileQueries,
        WorkspaceSlices& slices) {
    if (searchesFewDimsAgain(p)) {
        fewDims = takeFewDimsAgain(p, tileQueries, slices);
        return;
    }
    constexpr idx_t kMostVectors = idx_t(1) << 25; // 64 MiB
    constexpr size_t kMostKeys = size_t(1) << 20;
    const double most = std::min<double>(worthySets(p), kMostGroups);
    if (p.numVectors > kMostVectors || most < 1) {
        return;
    }
    groups.most = uint32_t(most);
    const size_t slots =
            std::min<size_t>(std::max<idx_t>(tileQueries, 1), kMaxScanSlots);
    groups.room = uint32_t(std::max<size_t>(
            std::min(slots * groups.most, kMostKeys), groups.most));
    groups.ofVectors = slices.take<uint16_t>(p.numVectors + kLongestChunk);
    groups.table = slices.take<unsigned long long>(kGroupSlots);
    groups.sizes = slices.take<uint32_t>(kGroupSlots);
    groups.places = slices.take<uint16_t>(groups.most);
    groups.count = slices.take<uint32_t>(1);
    groups.keys = slices.take<uint32_t>(groups.room);
}

Certifier::Certifier(
        const FlatKnnProblem& problem,
        int candidates,
        const ErrorBound& bound,
        const CertifiedScratch& scratch,
        cudaStream_t stream)
        : p_(problem),
          candidates_(candidates),
          bound_(bound),
          scratch_(scratch),
          stream_(stream) {}

void Certifier::begin() {
    if (bound_.ofImages) {
        return;
    }
    if (needsMaxima(p_)) {
        runRowMaxima(
                p_.vectors,
                p_.dataType,
                p_.vectorsRowMajor,
                p_.numVectors,
                p_.d,
                scratch_.maxima,
                stream_);
    }
    if (!needsGreatestNorm(p_)) {
        return;
    }
    const float* norms = p_.vectorNorms;
    if (!norms) {
        runSquaredNorms(
                p_.vectors,
                p_.dataType,
                p_.vectorsRowMajor,
                p_.numVectors,
                p_.d,
                scratch_.norms,
                stream_);
        norms = scratch_.norms;
    }
    runGreatest(norms, p_.numVectors, scratch_.greatestNorm, stream_);
}

CertifiedParams Certifier::paramsOf(idx_t firstQuery, idx_t count) const {
    CertifiedParams params;
    params.vectors.data = p_.vectors;
    params.vectors.type = p_.dataType;
    params.vectors.rowStride = p_.vectorsRowMajor ? p_.d : 1;
    params.vectors.columnStride = p_.vectorsRowMajor ? 1 : p_.numVectors;
    params.n = p_.numVectors;
    params.allowedBits = p_.allowedBits;
    params.numAllowed = p_.allowedIds ? std::min(p_.numAllowed, p_.numVectors)
                                      : p_.numVectors;
    params.d = p_.d;
    if (p_.exactQueries) {
        params.queries = p_.exactQueries + firstQuery * p_.d;
        params.roundedQueries = scratch_.rounded;
    } else if (widensQueries(p_)) {
        params.queries = scratch_.exact;
    } else {
        params.queries =
                static_cast<const float*>(p_.queries) + firstQuery * p_.d;
    }
    params.rows = uint32_t(count);
    params.k = p_.k;
    params.numCandidates = candidates_;
    params.keys = scratch_.keys;
    params.columns = scratch_.columns;
    params.entries = scratch_.entries;
    params.bound = bound_;
    params.greatestNorm =
            p_.greatestNorm ? p_.greatestNorm : scratch_.greatestNorm;
    params.maxima = p_.rowMaxima ? p_.rowMaxima : scratch_.maxima;
    params.metricArg = p_.metricArg;
    if (p_.metric == Metric::Lp) {
        params.power = canonical::Power(p_.metricArg);
    }
    params.flags = scratch_.flags;
    params.numRepeated = p_.numRepeated;
    params.numRescored = p_.numRescored;
    const size_t outAt = size_t(firstQuery) * p_.k;
    params.outDistances = p_.outDistances + outAt;
    params.outIds =
            static_cast<uint8_t*>(p_.outIds) + outAt * sizeOf(p_.idType);
    params.ids64 = p_.idType == IdType::Int64;
    return params;
}

ScanAgainParams Certifier::scanOf(const CertifiedParams& params) const {
    ScanAgainParams scan;
    scan.search = params;
    scan.lists = scratch_.lists;
    scan.counts = scratch_.counts;
    scan.limits = scratch_.limits;
    scan.groups = scratch_.groups;
    scan.keep = uint32_t(std::min<idx_t>(p_.k, p_.numVectors));
    // The tiles of a step, of 16 vectors and more, have numbers of 32 bits.
    const size_t most =
            p_.numVectors > idx_t(1) << 29 ? kLeastSlots : kMaxScanSlots;
    const size_t rows = std::min<size_t>(most, params.rows);
    const size_t wanted = scratch_.listEntries / wantedEntries(p_);
    const size_t some =
            std::min(kLeastSlots, scratch_.listEntries / fewestEntries(p_));
    scan.slots = uint32_t(std::clamp<size_t>(std::max(wanted, some), 1, rows));
    scan.capacity = int64_t(std::min<size_t>(
            scratch_.listEntries / scan.slots,
            size_t(scan.keep) + p_.numVectors));
    return scan;
}

CertifiedParams Certifier::enter(idx_t firstQuery, idx_t count) {
    if (scratch_.exact || scratch_.rounded) {
        runWidenQueries(
                p_.queries,
                p_.dataType,
                p_.queriesRowMajor,
                p_.numQueries,
                firstQuery,
                count,
                p_.d,
                scratch_.exact ? scratch_.exact : scratch_.rounded,
                stream_);
    }
    return paramsOf(firstQuery, count);
}

void Certifier::scanAgain(const CertifiedParams& params, bool haveResults) {
    ScanAgainParams scan = scanOf(params);
    scan.haveResults = haveResults;
    scanAgain(scan);
}

void Certifier::scanAgain(const ScanAgainParams& scan) {
    const int multiprocessors = p_.device.multiprocessors;
    if (scratch_.fewDims.strips > 0) {
        FewDimsParams again = scratch_.fewDims;
        again.search = scan.search;
        again.counts = scratch_.counts;
        launchFewDimsAgain(p_.metric, again, multiprocessors, stream_);
    } else {
        launchesFor(p_.metric).scanAgain(scan, multiprocessors, stream_);
    }
}

void Certifier::finish(idx_t firstQuery, idx_t count) {
    const CertifiedParams params = enter(firstQuery, count);
    launchesFor(p_.metric).rescore(params, stream_);
    ScanAgainParams scan = scanOf(params);
    scan.mayBeAlike = params.entries != nullptr;
    scan.areRanked = true;
    scanAgain(scan);
}

} // namespace faiss_bits
