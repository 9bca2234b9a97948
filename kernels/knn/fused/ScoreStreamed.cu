/// Canonical distances of what passed, of vectors in memory: eight lanes a
/// pair, whose vector comes through a ring of their own in shared memory, so
/// that bytes in flight cost no registers; the query lies there in float64.
///
/// Bound by: the read of the vectors; from L2 by conversions to float64.
#include "kernels/knn/fused/ScoreStreamed.h"

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/Error.h"
#include "kernels/device/AsyncCopy.cuh"
#include "kernels/knn/fused/ScorePassed.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 4;
constexpr int kGroups = kThreads / kPairLanes;
/// Of a group's ring; with this beside them groups meet no banks of others.
constexpr int kStages = 4;
constexpr int kStageBytes = 256;
constexpr int kRingBytes = kStages * kStageBytes + 32;
constexpr int kLeastRowBytes = 1024;
constexpr int kMostDims = 1536;
static_assert(
        kGroups * kRingBytes + kMostDims * sizeof(double) <= 48 * 1024,
        "what a block may have unasked");

__device__ __forceinline__ void copyAhead(void* shared, const void* global) {
    copyAsync(sharedAddress(shared), globalAddress(global));
}

/// Vectors of a row's list, one after another, as eight lanes ask for them.
class ListedVectors {
   public:
    /// Those of places first, first + step, ...
    __device__ __forceinline__ ListedVectors(
            const CertifiedParams& search,
            const int32_t* columns,
            uint32_t count,
            uint32_t first,
            uint32_t step)
            : search_(search),
              columns_(columns),
              count_(count),
              place_(first),
              step_(step) {}

    /// The number of the next one, -1 behind the last: all lanes of the warp
    /// call it.
    __device__ __forceinline__ int32_t next() {
        const int lane = threadIdx.x % kPairLanes;
        if (turn_ == 0) { // asked for eight at a time
            const uint32_t mine = place_ + lane * step_;
            ahead_ = mine < count_ ? columns_[mine] : -1;
            if (search_.listedIds && ahead_ >= 0) {
                ahead_ = search_.listedIds[ahead_];
            }
        }
        const int32_t column =
                __shfl_sync(kFullWarp, ahead_, turn_, kPairLanes);
        if (++turn_ == kPairLanes) {
            turn_ = 0;
            place_ += kPairLanes * step_;
        }
        return column;
    }

   private:
    const CertifiedParams& search_;
    const int32_t* columns_;
    uint32_t count_;
    uint32_t place_;
    uint32_t step_;
    int32_t ahead_ = -1;
    int turn_ = 0;
};

/// Several blocks a row (y), as scorePassedKernel.
template <Metric kMetric, class T>
__global__ __launch_bounds__(kThreads, kBlocks) void scoreStreamedKernel(
        const __grid_constant__ PassedParams params) {
    using Terms = canonical::Terms<kMetric>;
    constexpr int kStageDims = kStageBytes / sizeof(T);
    constexpr int kPieceDims = 16 / sizeof(T);
    constexpr int kPieces = kStageBytes / 16 / kPairLanes; // of a lane
    __shared__ __align__(16) uint8_t rings[kGroups][kRingBytes];
    extern __shared__ double query[]; // zeros behind d
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const T* const vectors = static_cast<const T*>(search.vectors.data);
    const int lane = threadIdx.x % kPairLanes;
    const int group = threadIdx.x / kPairLanes;
    const int d = search.d;
    const int chunks = (d + kStageDims - 1) / kStageDims;
    const uint32_t step = gridDim.x * kGroups;
    for (uint32_t row = blockIdx.y; row < search.rows; row += gridDim.y) {
        if (leaveList(params, row)) {
            continue;
        }
        const uint32_t count =
                min(params.counts[row], uint32_t(search.numCandidates));
        if (search.numRescored && blockIdx.x == 0 && threadIdx.x == 0) {
            atomicAdd(search.numRescored, (unsigned long long)count);
        }
        const float* q = search.queries + int64_t(row) * d;
        __syncthreads();
        for (int c = threadIdx.x; c < chunks * kStageDims; c += kThreads) {
            query[c] = c < d ? double(q[c]) : 0.0;
        }
        __syncthreads();
        const int32_t* columns =
                search.columns + int64_t(row) * search.numCandidates;
        uint64_t* entries =
                search.entries + int64_t(row) * search.numCandidates;
        const uint32_t first = blockIdx.x * kGroups + group;
        // The same for the groups of a warp.
        const uint32_t firstOfWarp = first / 4 * 4;
        const uint32_t turns = firstOfWarp < count
                ? (count - firstOfWarp + step - 1) / step
                : 0;

        // What is asked for, some stages ahead of what is computed.
        ListedVectors listed(search, columns, count, first, step);
        uint32_t askedTurns = 0;
        int askedChunk = 0;
        int askedStage = 0;
        int32_t asked = -1;
        const auto ask = [&] {
            if (askedTurns < turns) {
                if (askedChunk == 0) {
                    asked = listed.next();
                }
                uint8_t* to = rings[group] + askedStage * kStageBytes;
                const T* from = vectors +
                        int64_t(max(asked, 0)) * search.vectors.rowStride;
#pragma unroll
                for (int i = 0; i < kPieces; ++i) {
                    const int piece = i * kPairLanes + lane;
                    const int c = askedChunk * kStageDims + piece * kPieceDims;
                    if (asked >= 0 && c < d) {
                        copyAhead(to + piece * 16, from + c);
                    }
                }
                askedStage = (askedStage + 1) % kStages;
                if (++askedChunk == chunks) {
                    askedChunk = 0;
                    ++askedTurns;
                }
            }
            endCopies();
        };
        for (int i = 0; i < kStages - 1; ++i) {
            ask();
        }
        ListedVectors scored(search, columns, count, first, step);
        int stage = 0;
        for (uint32_t turn = 0; turn < turns; ++turn) {
            const int32_t column = scored.next();
            double sums[Terms::kSums] = {};
            for (int chunk = 0; chunk < chunks; ++chunk) {
                waitForCopies<kStages - 2>();
                __syncwarp();
                ask(); // to the stage that was computed last
                const T* x = reinterpret_cast<const T*>(
                        rings[group] + stage * kStageBytes);
                const double* qs = query + chunk * kStageDims;
                const int left = d - chunk * kStageDims;
                const auto add = [&](int c, float component) {
                    Terms::add(sums, double(component), qs[c], search.power);
                };
                if (left >= kStageDims) {
#pragma unroll
                    for (int i = 0; i < kStageDims / kPairLanes; ++i) {
                        const int c = i * kPairLanes + lane;
                        add(c, toFloat(x[c]));
                    }
                } else {
                    for (int c = lane; c < left; c += kPairLanes) {
                        add(c, toFloat(x[c]));
                    }
                }
                stage = (stage + 1) % kStages;
            }
#pragma unroll
            for (int j = 0; j < Terms::kSums; ++j) {
                // Slots 0 and 4, then 2 and 6 to them, then the odd ones.
#pragma unroll
                for (int lanes = kPairLanes / 2; lanes >= 1; lanes /= 2) {
                    const double other =
                            __shfl_xor_sync(kFullWarp, sums[j], lanes);
                    sums[j] = Terms::join(sums[j], other);
                }
            }
            const uint32_t place = first + turn * step;
            if (place < count && lane == 0) {
                entries[place] = column < 0
                        ? kNoEntry
                        : distanceEntry<kMetric>(
                                  Terms::finish(sums), uint32_t(column));
            }
        }
        waitForCopies<0>();
    }
}

template <Metric kMetric>
void launch(
        const PassedParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    const CertifiedParams& search = params.search;
    const unsigned rows = std::min(search.rows, 65535u);
    // As launchScorePassed.
    const unsigned wanted =
            (unsigned(search.numCandidates) / 4 + kGroups - 1) / kGroups;
    const unsigned most =
            std::max(1u, (32u * unsigned(multiprocessors) + rows - 1) / rows);
    constexpr double kLong = 0x1p28;
    const bool isLong = double(search.rows) * search.k * search.d >= kLong;
    const auto start = [&]<class T>(T) {
        constexpr int kStageDims = kStageBytes / sizeof(T);
        launchAfterPrevious(
                scoreStreamedKernel<kMetric, T>,
                dim3(std::clamp(wanted, 1u, most), rows),
                kThreads,
                size_t((search.d + kStageDims - 1) / kStageDims) * kStageDims *
                        sizeof(double),
                stream,
                params,
                !isLong);
    };
    switch (search.vectors.type) {
        case DataType::Float32:
            return start(float());
        case DataType::Float16:
            return start(__half());
        case DataType::BFloat16:
            return start(__nv_bfloat16());
    }
}

} // namespace

bool canScoreStreamed(Metric metric, const CertifiedParams& search) {
    const size_t size = sizeOf(search.vectors.type);
    return isOfProducts(metric) && search.d <= kMostDims &&
            search.vectors.columnStride == 1 &&
            search.d * size >= kLeastRowBytes &&
            search.vectors.rowStride * size % 16 == 0 &&
            search.d * size % 16 == 0 &&
            reinterpret_cast<uintptr_t>(search.vectors.data) % 16 == 0;
}

void launchScoreStreamed(
        Metric metric,
        const PassedParams& params,
        int multiprocessors,
        cudaStream_t stream) {
    BITS_THROW_IF_NOT_FMT(
            canScoreStreamed(metric, params.search),
            "metric = %d, d = %d: such vectors are not streamed",
            int(metric),
            params.search.d);
    switch (metric) {
        case Metric::InnerProduct:
            return launch<Metric::InnerProduct>(
                    params, multiprocessors, stream);
        case Metric::Cosine:
            return launch<Metric::Cosine>(params, multiprocessors, stream);
        default:
            return launch<Metric::L2>(params, multiprocessors, stream);
    }
}

} // namespace faiss_bits
