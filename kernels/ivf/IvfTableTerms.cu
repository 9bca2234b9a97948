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
#include "kernels/ivf/IvfBoundedScans.h"

namespace faiss_bits {

namespace {

constexpr int kThreads = 128;
constexpr int kVectors = 8; // of a block: queries, or centroids
constexpr int kAtATime = 64;
static_assert(2 * kThreads >= kIvfCodebookRows);

/// Of a part, a thread two rows; queries first, then lists.
template <Metric kMetric>
__global__ __launch_bounds__(kThreads) void tableTermsKernel(
        const __grid_constant__ IvfDirectParams params) {
    // Two vectors' side by side.
    __shared__ double2 components[kAtATime][kVectors / 2];
    allowNext();
    waitForPrevious();
    const IvfParams& search = params.search;
    const ListDecoding& decoding = search.lists.decoding;
    const uint32_t ofQueries = (search.rows + kVectors - 1) / kVectors;
    const bool isOfQueries = blockIdx.x < ofQueries;
    const int64_t first =
            int64_t(isOfQueries ? blockIdx.x : blockIdx.x - ofQueries) *
            kVectors;
    // Without centroids there is one list, of zeros.
    const float* from = isOfQueries ? search.queries : decoding.centroids;
    const int64_t all = isOfQueries ? int64_t(search.rows)
            : from                  ? search.lists.numLists
                                    : 1;
    const int count = int(min(all - first, int64_t(kVectors)));
    const int part = int(blockIdx.y);
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
                    ? from[(first + v) * search.d + part * dims + begin + c]
                    : 0.0f;
            reinterpret_cast<double*>(components[c])[v] = double(x);
        }
        __syncthreads();
#pragma unroll 4
        for (int c = 0; c < step; ++c) {
            const float2 both = codebook[int64_t(begin + c) * half];
            const double y[2] = {double(both.x), double(both.y)};
#pragma unroll
            for (int i = 0; i < kVectors / 2; ++i) {
                const double2 x = components[c][i];
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
            (first * decoding.numParts + part) * half + row;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
        if (v < count) {
            to[int64_t(v) * decoding.numParts * half] = make_float2(
                    float(fma(factor, products[0][v], squares[0])),
                    float(fma(factor, products[1][v], squares[1])));
        }
    }
}

} // namespace

void launchIvfTableTerms(
        const IvfDirectParams& params,
        bool makesLists,
        cudaStream_t stream) {
    const IvfLists& lists = params.search.lists;
    const auto blocksOf = [](idx_t vectors) {
        return unsigned((vectors + kVectors - 1) / kVectors);
    };
    const idx_t ofLists =
            makesLists && params.listTerms ? ivfListsOfTerms(lists) : 0;
    launchAfterPrevious(
            params.largest ? tableTermsKernel<Metric::InnerProduct>
                           : tableTermsKernel<Metric::L2>,
            dim3(blocksOf(params.search.rows) + blocksOf(ofLists),
                 unsigned(lists.decoding.numParts)),
            kThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits
