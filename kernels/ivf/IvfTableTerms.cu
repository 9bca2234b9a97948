// What a query and what a list adds to the entries of tables (IvfTables.cuh),
// of every row of the codebook: with |s - y|^2 - |s|^2 = |y|^2 - 2 <q, y> +
// 2 <c, y> neither has to be made for each pair of them (Jegou, Douze and
// Schmid 2011; FAISS's precomputed tables). IvfTableBound.h, "Sums of terms",
// says how far such an entry may be off.
//
// Bound by: an operation of float64 for each row, component, and query or
// list, 64 a cycle of a multiprocessor; a number is rounded once, so that it
// does not matter how far from the origin queries and lists are.

#include "kernels/common/DependentLaunch.h"
#include "kernels/device/WarpReduce.cuh"
#include "kernels/ivf/IvfBoundedScans.h"

namespace faiss_bits {

namespace {

constexpr int kThreads = 128;
constexpr int kVectors = 8;       // at a time: queries, or centroids
constexpr int kLists = kWarpSize; // of a block, of which some are probed
constexpr int kAtATime = 64;      // components
static_assert(2 * kThreads >= kIvfCodebookRows);

/// Of a part, a thread two rows; queries first, then lists.
template <Metric kMetric>
struct TableTerms {
    struct SharedStorage {
        // Two vectors' side by side.
        double2 components[kAtATime][kVectors / 2];
        uint32_t numbers[kLists]; // of queries, or of lists
        uint32_t count;
    };

    SharedStorage& shared;
    const IvfDirectParams& params;
    const bool isOfQueries;

    __device__ __forceinline__ void run(uint32_t block, int part) const {
        choose(block);
        __syncthreads();
        for (uint32_t first = 0; first < shared.count; first += kVectors) {
            make(first, part);
        }
    }

   private:
    /// The queries, or those of some lists that any query probes.
    __device__ __forceinline__ void choose(uint32_t block) const {
        const IvfParams& search = params.search;
        const uint32_t lane = threadIdx.x;
        if (lane >= kWarpSize) {
            return;
        }
        const uint32_t number =
                block * (isOfQueries ? kVectors : kLists) + lane;
        bool isThere = false;
        if (isOfQueries) {
            isThere = lane < kVectors && number < search.rows;
        } else if (!search.lists.decoding.centroids) {
            isThere = number == 0; // one list for all, of zeros
        } else {
            isThere =
                    number < search.lists.numLists && search.counts[number] > 0;
        }
        const uint32_t all = __ballot_sync(kFullWarp, isThere);
        if (isThere) {
            shared.numbers[__popc(all & ((1u << lane) - 1))] = number;
        }
        if (lane == 0) {
            shared.count = __popc(all);
        }
    }

    /// Terms of the chosen ones from `first` on.
    __device__ __forceinline__ void make(uint32_t first, int part) const {
        const IvfParams& search = params.search;
        const ListDecoding& decoding = search.lists.decoding;
        const float* from = isOfQueries ? search.queries : decoding.centroids;
        const int count = min(int(shared.count - first), kVectors);
        const int dims = search.d / decoding.numParts;
        const int half = 1 << (decoding.partBits - 1);
        const int row = int(threadIdx.x); // and the next one, of two
        const auto* codebook =
                reinterpret_cast<const float2*>(params.turnedCodebook) +
                int64_t(part) * dims * half + min(row, half - 1);
        double products[2][kVectors] = {};
        double squares[2] = {};
        for (int begin = 0; begin < dims; begin += kAtATime) {
            const int step = min(kAtATime, dims - begin);
            __syncthreads(); // the components before are read
            for (int i = row; i < step * kVectors; i += kThreads) {
                const int c = i % step;
                const int v = i / step;
                const float x = from && v < count
                        ? from[int64_t(shared.numbers[first + v]) * search.d +
                               part * dims + begin + c]
                        : 0.0f;
                reinterpret_cast<double*>(shared.components[c])[v] = double(x);
            }
            __syncthreads();
#pragma unroll 4
            for (int c = 0; c < step; ++c) {
                const float2 both = codebook[int64_t(begin + c) * half];
                const double y[2] = {double(both.x), double(both.y)};
#pragma unroll
                for (int i = 0; i < kVectors / 2; ++i) {
                    const double2 x = shared.components[c][i];
#pragma unroll
                    for (int r = 0; r < 2; ++r) {
                        products[r][2 * i] = fma(y[r], x.x, products[r][2 * i]);
                        products[r][2 * i + 1] =
                                fma(y[r], x.y, products[r][2 * i + 1]);
                    }
                }
                if (!isOfQueries) {
                    squares[0] = fma(y[0], y[0], squares[0]);
                    squares[1] = fma(y[1], y[1], squares[1]);
                }
            }
        }
        if (row >= half) {
            return;
        }
        const double factor = !isOfQueries ? 2.0
                : kMetric == Metric::L2    ? -2.0
                                           : -1.0;
        auto* to = reinterpret_cast<float2*>(
                           isOfQueries ? params.queryTerms : params.listTerms) +
                int64_t(part) * half + row;
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
            if (v < count) {
                to[int64_t(shared.numbers[first + v]) * decoding.numParts *
                   half] =
                        make_float2(
                                float(fma(factor, products[0][v], squares[0])),
                                float(fma(factor, products[1][v], squares[1])));
            }
        }
    }
};

template <Metric kMetric>
__global__ __launch_bounds__(kThreads) void tableTermsKernel(
        const __grid_constant__ IvfDirectParams params) {
    __shared__ typename TableTerms<kMetric>::SharedStorage shared;
    allowNext();
    waitForPrevious();
    const uint32_t ofQueries = (params.search.rows + kVectors - 1) / kVectors;
    const bool isOfQueries = blockIdx.x < ofQueries;
    TableTerms<kMetric>{shared, params, isOfQueries}.run(
            isOfQueries ? blockIdx.x : blockIdx.x - ofQueries, int(blockIdx.y));
}

} // namespace

void launchIvfTableTerms(const IvfDirectParams& params, cudaStream_t stream) {
    const IvfLists& lists = params.search.lists;
    const auto blocksOf = [](idx_t vectors, int ofBlock) {
        return unsigned((vectors + ofBlock - 1) / ofBlock);
    };
    const idx_t ofLists = params.listTerms ? ivfListsOfTerms(lists) : 0;
    launchAfterPrevious(
            params.largest ? tableTermsKernel<Metric::InnerProduct>
                           : tableTermsKernel<Metric::L2>,
            dim3(blocksOf(params.search.rows, kVectors) +
                         blocksOf(ofLists, kLists),
                 unsigned(lists.decoding.numParts)),
            kThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits
