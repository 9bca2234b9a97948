/// Lists of keys: which of what passed canonical distances are worth, or
/// results without such.
#include "kernels/knn/fused/NearLists.h"

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/device/LaneMask.cuh"
#include "kernels/knn/certified/LongTerms.cuh"
#include "kernels/knn/fused/ByteBound.cuh"
#include "kernels/knn/fused/KeyReach.h"
#include "kernels/knn/fused/tensor/ScanRows.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
/// Ordered products: of those that are no numbers, and places without one.
constexpr uint32_t kNone = ~0u;

/// A warp a query.
template <Metric kMetric>
class NearList {
   public:
    __device__ __forceinline__
    NearList(const NearListsParams& params, uint32_t row)
            : params_(params),
              row_(row),
              products_(
                      params.products +
                      int64_t(row) * params.search.numCandidates),
              isOfBytes_(kMetric == Metric::L2 && params.bytes.takes(row)),
              factor_(isOfBytes_ ? 0.5f // a product has no unit
                                 : params.search.imageFacts->inverse *
                                      params.inverses[row]) {}

    /// The bound of the scan that made the list.
    __device__ __forceinline__ RowBound<kMetric> bound() const {
        return isOfBytes_
                ? byteBound<kMetric>(params_.search, params_.bytes, row_)
                : imageBound<kMetric>(params_.search, row_);
    }
    /// And its limit.
    __device__ __forceinline__ float limit() const {
        return (isOfBytes_ ? params_.bytes.limits : params_.limits)[row_];
    }

    /// The rank'th product of the first `count`, ordered nearest first.
    template <int kItems>
    __device__ __forceinline__ uint32_t ranked(uint32_t count) const {
        uint32_t mine[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) {
            const uint32_t at = i * kWarpSize + threadIdx.x % kWarpSize;
            const float value = at < count ? valueAt(at) : nanf("");
            mine[i] = value == value ? orderedKey(-value) : kNone;
        }
        uint32_t found = 0;
#pragma unroll 1
        for (int bit = 31; bit >= 0; --bit) {
            const uint32_t next = found | 1u << bit;
            uint32_t below = 0;
#pragma unroll
            for (int i = 0; i < kItems; ++i) {
                below += mine[i] < next;
            }
            below = __reduce_add_sync(kFullWarp, below);
            found = below < params_.rank ? next : found;
        }
        return found;
    }

    /// Whether products say keys (canKeepProducts).
    __device__ __forceinline__ bool isFit() const {
        return kMetric != Metric::L2 || isOfBytes_ ||
                isNormFactor(
                        0.5f * params_.search.imageFacts->normInverse *
                        (1.0f / factor_));
    }

    /// That a canonical distance would have, but for its error.
    __device__ __forceinline__ double keyOf(
            uint32_t ordered,
            const RowBound<kMetric>& bound) const {
        return keyOf(-double(keyValue(ordered)), bound.centerProduct.value);
    }
    /// center: of inner products, CenterProduct::value.
    __device__ __forceinline__ double keyOf(double value, double center) const {
        if (kMetric == Metric::L2) {
            const double norm = params_.search.queryNorms[row_];
            return fmax(norm - 2.0 * factor_ * value, 0.0);
        }
        return -value * factor_ - center;
    }

    /// The least product within a limit, as LimitTest has it.
    __device__ __forceinline__ float leastWithin(float limit) const {
        constexpr float kMost = 3.402823466e+38f;
        const float least = kMetric == Metric::L2
                ? (params_.search.queryNorms[row_] - limit) * (0.5f / factor_)
                : -limit * (1.0f / factor_);
        return least > kMost ? kMost : least;
    }

    __device__ __forceinline__ float valueAt(uint32_t i) const {
        return __uint_as_float(uint32_t(products_[i] >> 32));
    }
    __device__ __forceinline__ int32_t vectorAt(uint32_t i) const {
        return int32_t(uint32_t(products_[i]));
    }

   private:
    const NearListsParams& params_;
    uint32_t row_;
    const uint64_t* products_;
    bool isOfBytes_;
    float factor_;
};

__device__ __forceinline__ uint32_t ownRow() {
    return blockIdx.x * (kThreads / kWarpSize) + threadIdx.x / kWarpSize;
}

template <Metric kMetric>
__global__ __launch_bounds__(kThreads) void nearLimitsKernel(
        const __grid_constant__ NearListsParams params) {
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const int lane = threadIdx.x % kWarpSize;
    const uint32_t row = ownRow();
    if (row >= search.rows) {
        return;
    }
    const uint32_t count = params.counts[row];
    __syncwarp();
    if (lane == 0) {
        params.counts[row] = 0;
    }
    if (count < params.rank ||
        count > min(kMostSecondEntries, uint32_t(search.numCandidates))) {
        return;
    }
    const NearList<kMetric> list(params, row);
    const uint32_t ranked =
            list.template ranked<kMostSecondEntries / kWarpSize>(count);
    if (lane != 0 || ranked == kNone || !list.isFit()) {
        return;
    }
    const RowBound<kMetric> bound = imageBound<kMetric>(search, row);
    // Where the sample may have all of the nearest ones, no vector beside them
    // makes up for what a key is off by: for one nearest of all the proof would
    // fail half of the time. Of a larger k the rank is that of a vector beyond
    // the k nearest.
    const double key = list.keyOf(ranked, bound);
    const bool mayHaveAll = params.rank >= uint32_t(search.k);
    const double reach = mayHaveAll ? reachOfKey(key, bound) : key;
    const float limit = __double2float_ru(bound.limitOf(reach));
    if (limit < params.limits[row]) {
        params.limits[row] = limit;
        params.complete[row] = __double2float_rd(reach);
    }
}

/// What is left of a list.
struct Cut {
    float least;    // product; NaN: all stays
    float complete; // canonical distances up to it are in the list
};

/// One lane calls it.
template <Metric kMetric>
__device__ __forceinline__ Cut
cutAt(const NearListsParams& params,
      const NearList<kMetric>& list,
      uint32_t row,
      uint32_t ranked) {
    const float complete = params.complete[row];
    const Cut all{nanf(""), complete};
    if (ranked == kNone || !list.isFit() || !(complete == complete)) {
        return all;
    }
    const RowBound<kMetric> bound = list.bound();
    // Canonical distances of the rank nearest are up to here.
    const double reach = reachOfKey(list.keyOf(ranked, bound), bound);
    const float limit = __double2float_ru(bound.limitOf(reach));
    if (!(limit < list.limit())) {
        return all;
    }
    return {list.leastWithin(limit), fminf(complete, __double2float_rd(reach))};
}

template <Metric kMetric>
__global__ __launch_bounds__(kThreads) void nearListsKernel(
        const __grid_constant__ NearListsParams params) {
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const int lane = threadIdx.x % kWarpSize;
    const uint32_t row = ownRow();
    if (row >= search.rows) {
        return;
    }
    const uint32_t passed = params.counts[row];
    const uint32_t count = min(passed, uint32_t(search.numCandidates));
    const NearList<kMetric> list(params, row);
    Cut cut{nanf(""), 0};
    if (passed > params.rank && passed <= kMostNearEntries && passed == count) {
        constexpr int kFewItems = 8;
        const uint32_t ranked = count <= kFewItems * kWarpSize
                ? list.template ranked<kFewItems>(count)
                : list.template ranked<kMostNearEntries / kWarpSize>(count);
        if (lane == 0) {
            cut = cutAt(params, list, row, ranked);
        }
        cut.least = __shfl_sync(kFullWarp, cut.least, 0);
    }
    int32_t* columns = params.columns + int64_t(row) * search.numCandidates;
    uint32_t kept = 0;
    for (uint32_t base = 0; base < count; base += kWarpSize) {
        const uint32_t i = base + lane;
        const bool stays = i < count && !(list.valueAt(i) < cut.least);
        const uint32_t lanes = __ballot_sync(kFullWarp, stays);
        if (stays) {
            columns[kept + __popc(lanes & lanesBefore())] = list.vectorAt(i);
        }
        kept += __popc(lanes);
    }
    if (lane == 0 && cut.least == cut.least) {
        params.counts[row] = kept;
        params.complete[row] = cut.complete;
    }
}

/// The entry of a vector's canonical distance. All lanes of the warp call it.
template <Metric kMetric>
__device__ __noinline__ uint64_t
canonicalEntry(const CertifiedParams& search, uint32_t row, uint32_t vector) {
    double distance = 0;
    withVectors(search.vectors, [&](const auto* data) {
        distance = distanceOfPair<kMetric>(
                search,
                data + int64_t(vector) * search.vectors.rowStride,
                search.queries + int64_t(row) * search.d,
                search.d);
    });
    return distanceEntry<kMetric>(distance, vector);
}

/// Of images, L2 and inner products: whether there is a bound for every vector
/// of finite components, however far. RowBound::at() has one for those that are
/// near, and a longer vector than images have room for seems nearer than it is
/// (TensorImage::normSteps).
template <Metric kMetric>
__device__ __forceinline__ bool isOfAll(const RowBound<kMetric>& bound) {
    return tensorScanError(
                   kMetric,
                   bound.d,
                   bound.norm,
                   bound.residual,
                   bound.greatest,
                   bound.imageResidual,
                   bound.imageNormError) < bounds::kInfinity;
}

/// Makes entries of the keys that products say, and of canonical distances
/// where they say none.
template <Metric kMetric>
__global__ __launch_bounds__(kThreads) void keyEntriesKernel(
        const __grid_constant__ NearListsParams params) {
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const int lane = threadIdx.x % kWarpSize;
    const uint32_t row = ownRow();
    if (row >= search.rows) {
        return;
    }
    const uint32_t passed = params.counts[row];
    const uint32_t count = min(passed, uint32_t(search.numCandidates));
    const NearList<kMetric> list(params, row);
    const float complete = params.complete[row];
    // No query: all distances are NaN, and nothing is asked of the list.
    const bool isNone = complete != complete;
    const RowBound<kMetric> bound = imageBound<kMetric>(search, row);
    const bool isBounded = isOfAll(bound);
    if (!isNone &&
        (!list.isFit() || complete == -INFINITY ||
         (!isBounded && passed > count))) {
        if (lane == 0) {
            params.complete[row] = -INFINITY;
        }
        return;
    }
    uint64_t* entries = search.entries + int64_t(row) * search.numCandidates;
    for (uint32_t base = 0; base < count; base += kWarpSize) {
        const uint32_t i = base + lane;
        uint64_t entry = kNoEntry;
        int32_t vector = -1;
        bool isKnown = true;
        if (i < count) {
            vector = list.vectorAt(i);
            vector = search.listedIds ? search.listedIds[vector] : vector;
            const float value = list.valueAt(i);
            // Images of what is not finite are no numbers, nor is what they
            // meet.
            isKnown = isBounded && isfinite(value);
            if (vector >= 0 && isKnown) {
                const double key =
                        list.keyOf(double(value), bound.centerProduct.value);
                entry = makeEntry(
                        orderedKey(__double2float_rn(key)), uint32_t(vector));
            }
        }
        uint32_t lanes =
                __ballot_sync(kFullWarp, !isNone && vector >= 0 && !isKnown);
        if (lane == 0 && lanes && search.numRescored) {
            atomicAdd(search.numRescored, (unsigned long long)__popc(lanes));
        }
        for (; lanes; lanes &= lanes - 1) {
            const int from = __ffs(lanes) - 1;
            const uint64_t found = canonicalEntry<kMetric>(
                    search, row, __shfl_sync(kFullWarp, vector, from));
            entry = lane == from ? found : entry;
        }
        if (i < count) {
            entries[i] = entry;
        }
    }
    // Where all distances are canonical, `complete` proves them.
    if (lane == 0 && isBounded && isfinite(complete)) {
        constexpr float kMost = 3.402823466e+38f;
        params.complete[row] = passed >= uint32_t(search.k) ? kMost : -INFINITY;
    }
}

void launch(
        void (*kernel)(NearListsParams),
        const NearListsParams& params,
        cudaStream_t stream) {
    constexpr unsigned kRows = kThreads / kWarpSize;
    launchAfterPrevious(
            kernel,
            (params.search.rows + kRows - 1) / kRows,
            kThreads,
            0,
            stream,
            params);
}

void check(Metric metric) {
    BITS_THROW_IF_NOT_FMT(
            metric == Metric::L2 || metric == Metric::InnerProduct,
            "metric = %d has no products of scans",
            int(metric));
}

} // namespace

void launchNearLimits(
        Metric metric,
        const NearListsParams& params,
        cudaStream_t stream) {
    check(metric);
    launch(metric == Metric::L2 ? nearLimitsKernel<Metric::L2>
                                : nearLimitsKernel<Metric::InnerProduct>,
           params,
           stream);
}

void launchNearLists(
        Metric metric,
        const NearListsParams& params,
        cudaStream_t stream) {
    check(metric);
    launch(metric == Metric::L2 ? nearListsKernel<Metric::L2>
                                : nearListsKernel<Metric::InnerProduct>,
           params,
           stream);
}

void launchKeyEntries(
        Metric metric,
        const NearListsParams& params,
        cudaStream_t stream) {
    check(metric);
    launch(metric == Metric::L2 ? keyEntriesKernel<Metric::L2>
                                : keyEntriesKernel<Metric::InnerProduct>,
           params,
           stream);
}

} // namespace faiss_bits
