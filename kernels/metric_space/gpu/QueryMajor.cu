// The mapping of Barrientos et al. 2012, IV: a block a query, which lies in
// shared memory; vectors by columns, a thread each. Here its clusters are bits,
// and results are written.
//
// Bound by: reading the vectors for every query anew.

#include "kernels/common/CudaCheck.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/metric_space/gpu/FoundPairs.cuh"
#include "kernels/metric_space/gpu/RowDistances.cuh"

namespace faiss_bits::metric_space {

namespace {

constexpr int kThreads = 256;

/// One block's search.
template <Metric kMetric, GroupBounds kKind>
struct QueryMajor {
    const SearchParams& p;
    const MetricGroups& groups;
    float* query;    // [d], shared
    uint32_t* looks; // centers: bits of the clusters
    float* toPivots; // pivots: [references], as a table has them
    uint32_t& stop;
    uint32_t evaluated = 0; // by this thread

    __device__ float distanceTo(const float* columns, uint32_t i, size_t n) {
        ++evaluated;
        return threadDistance<kMetric>(
                [&](int c) { return columns[c * n + i]; }, query, groups.d);
    }

    __device__ void found(bool isThere, int32_t id, float distance) {
        appendOfWarp(
                p.found,
                isThere && distance <= p.limits[blockIdx.x],
                blockIdx.x,
                id,
                distance);
    }

    /// Algorithm 1, lines 11 to 20. The paper's loop ends at minC, which others
    /// lower meanwhile; here at the end of a round.
    __device__ void takeCenters(double reach) {
        const uint32_t count = groups.numBounded;
        for (uint32_t first = 0; first < count; first += kThreads) {
            const uint32_t c = first + threadIdx.x;
            float to = 0;
            bool visits = false;
            if (c < count) {
                to = distanceTo(
                        groups.referenceColumns, c, groups.numReferences);
                visits = reach >= 0 &&
                        !(canonical::leastTrue(kMetric, to) >
                          groups.mosts[c] + reach);
                if (canonical::mostTrue(kMetric, to) + reach <
                    groups.leasts[c]) {
                    atomicMin(&stop, c);
                }
            }
            found(c < count, c < count ? groups.referenceIds[c] : 0, to);
            const uint32_t word = __ballot_sync(kFullWarp, visits);
            if (threadIdx.x % kWarpSize == 0) {
                looks[c / kWarpSize] = word;
            }
            __syncthreads();
            const uint32_t last = stop;
            __syncthreads();
            if (last < first + kThreads) {
                break;
            }
        }
    }

    __device__ void takePivots() {
        const uint32_t count = groups.numReferences;
        for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
            const float to = distanceTo(groups.referenceColumns, i, count);
            toPivots[i] = canonical::tableDistance(kMetric, to);
        }
        __syncthreads();
    }

    __device__ bool looksAt(uint32_t i, double reach) const {
        const uint32_t bounded = groups.firsts[groups.numBounded];
        if (kKind == GroupBounds::None || i >= bounded) {
            return true;
        }
        if constexpr (kKind == GroupBounds::Centers) {
            const uint32_t c = i / groups.groupSize;
            return c <= stop && (looks[c / kWarpSize] >> c % kWarpSize & 1);
        }
        const uint32_t count = groups.numReferences;
        for (uint32_t j = 0; j < count; ++j) {
            const float known = groups.pivotDistances[j * groups.n + i];
            if (canonical::isOutside(known, toPivots[j], reach)) {
                return false;
            }
        }
        return true;
    }

    __device__ void addUp(unsigned long long* sum) const {
        const uint32_t all = __reduce_add_sync(kFullWarp, evaluated);
        if (sum && threadIdx.x % kWarpSize == 0) {
            atomicAdd(sum, (unsigned long long)all);
        }
    }

    __device__ void run() {
        for (int c = threadIdx.x; c < groups.d; c += kThreads) {
            query[c] = p.queries[int64_t(blockIdx.x) * groups.d + c];
        }
        if (threadIdx.x == 0) {
            stop = groups.numBounded;
        }
        __syncthreads();
        const double reach = p.reaches[blockIdx.x];
        if constexpr (kKind == GroupBounds::Centers) {
            takeCenters(reach);
        } else if constexpr (kKind == GroupBounds::Pivots) {
            takePivots();
        }
        addUp(p.numDistances ? p.numDistances + 1 : nullptr);
        const uint32_t n = uint32_t(groups.n);
        for (uint32_t first = 0; first < n; first += kThreads) {
            const uint32_t i = first + threadIdx.x;
            const bool looks = i < n && reach >= 0 && looksAt(i, reach);
            const float distance =
                    looks ? distanceTo(groups.vectorColumns, i, n) : 0.0f;
            found(looks, looks ? groups.ids[i] : 0, distance);
        }
        addUp(p.numDistances);
    }
};

size_t queryBytes(int d) {
    return (size_t(d) * sizeof(float) + 7) / 8 * 8;
}

template <Metric kMetric, GroupBounds kKind>
__global__ void __launch_bounds__(kThreads) queryMajorKernel(SearchParams p) {
    extern __shared__ __align__(16) uint8_t memory[];
    __shared__ uint32_t stop;
    uint8_t* behind = memory + (p.groups.d * sizeof(float) + 7) / 8 * 8;
    QueryMajor<kMetric, kKind>{
            p,
            p.groups,
            reinterpret_cast<float*>(memory),
            reinterpret_cast<uint32_t*>(behind),
            reinterpret_cast<float*>(behind),
            stop}
            .run();
}

template <Metric kMetric, GroupBounds kKind>
void launch(const SearchParams& p, cudaStream_t stream) {
    const MetricGroups& groups = p.groups;
    // Whole rounds of bits.
    const size_t bytes = queryBytes(groups.d) +
            (kKind == GroupBounds::Centers
                     ? (groups.numBounded / kThreads + 1) * kThreads / 8
                     : kKind == GroupBounds::Pivots
                     ? groups.numReferences * sizeof(float)
                     : 0);
    const auto kernel = queryMajorKernel<kMetric, kKind>;
    BITS_THROW_IF_NOT_FMT(
            allowSharedBytes(kernel, bytes) == bytes,
            "query-major search: d = %d and %u centers or pivots take %zu "
            "bytes of shared memory, more than the device has",
            groups.d,
            groups.numReferences,
            bytes);
    kernel<<<p.rows, kThreads, bytes, stream>>>(p);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace

void launchQueryMajor(const SearchParams& p, cudaStream_t stream) {
    withMetric(p.groups.metric, [&](auto metric) {
        constexpr Metric kMetric = metric();
        switch (p.groups.kind) {
            case GroupBounds::None:
                return launch<kMetric, GroupBounds::None>(p, stream);
            case GroupBounds::Centers:
                return launch<kMetric, GroupBounds::Centers>(p, stream);
            case GroupBounds::Pivots:
                return launch<kMetric, GroupBounds::Pivots>(p, stream);
        }
    });
}

} // namespace faiss_bits::metric_space
