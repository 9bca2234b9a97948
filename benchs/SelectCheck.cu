#include "benchs/SelectCheck.h"

#include "benchs/common/KeyTypes.cuh"

namespace faiss_bits::bench {

namespace {

constexpr int kThreads = 256;
constexpr unsigned kWarp = 32;
/// Elements of a row that a warp looks at together.
constexpr int64_t kChunk = 1024;

/// By row.
struct RowStates {
    uint32_t* isWrong;
    uint32_t* placesBefore;  // places that come before the last
    uint32_t* columnsBefore; // columns that do
};

/// An answer of one type of keys and of ids.
template <class T, class Id>
struct Answer {
    const T* keys;
    int64_t rows;
    int64_t cols;
    int64_t stride;
    int64_t k;
    bool largest;
    bool lowerColumnFirst;
    const T* outKeys;
    const Id* outIds;

    __device__ float keyAt(int64_t row, int64_t column) const {
        return float(keys[row * stride + column]);
    }

    /// Whether key a of column i comes before key b of column j.
    __device__ bool isBefore(float a, int64_t i, float b, int64_t j) const {
        const bool aIsNan = a != a;
        const bool bIsNan = b != b;
        if (!aIsNan && !bIsNan && a != b) {
            return (a < b) != largest;
        }
        if (aIsNan != bIsNan) {
            return bIsNan;
        }
        return lowerColumnFirst && i < j;
    }

    __device__ bool isColumn(int64_t id) const {
        return id >= 0 && id < cols;
    }
};

/// The row and the part of it that a warp looks at.
struct Chunk {
    int64_t row;
    int64_t begin;
    int64_t end;

    __device__ static Chunk of(int64_t warp, int64_t length) {
        const int64_t perRow = (length + kChunk - 1) / kChunk;
        const int64_t begin = warp % perRow * kChunk;
        return {warp / perRow, begin, min(begin + kChunk, length)};
    }
};

__device__ int64_t warpOfGrid() {
    return (blockIdx.x * int64_t(blockDim.x) + threadIdx.x) / kWarp;
}

__device__ void addOfWarp(uint32_t* to, uint32_t count) {
    for (unsigned lanes = kWarp / 2; lanes > 0; lanes /= 2) {
        count += __shfl_xor_sync(0xFFFFFFFFu, count, lanes);
    }
    if (threadIdx.x % kWarp == 0 && count > 0) {
        atomicAdd(to, count);
    }
}

/// Same bits, zeros and NaN aside.
__device__ bool isSameKey(float a, float b) {
    return a == b || (a != a && b != b);
}

/// Every place of the results: its id, its key, and the place before it.
template <class T, class Id>
__global__ void checkPlacesKernel(
        Answer<T, Id> answer,
        uint32_t* seen,
        RowStates states) {
    const Chunk chunk = Chunk::of(warpOfGrid(), answer.k);
    if (chunk.row >= answer.rows) {
        return;
    }
    const T* outKeys = answer.outKeys + chunk.row * answer.k;
    const Id* outIds = answer.outIds + chunk.row * answer.k;
    const float last = float(outKeys[answer.k - 1]);
    const int64_t lastId = outIds[answer.k - 1];
    uint32_t before = 0;
    for (int64_t i = chunk.begin + threadIdx.x % kWarp; i < chunk.end;
         i += kWarp) {
        const int64_t id = outIds[i];
        const float key = float(outKeys[i]);
        bool isRight = answer.isColumn(id) &&
                isSameKey(key, answer.keyAt(chunk.row, id));
        if (isRight) {
            const int64_t bit = chunk.row * answer.cols + id;
            const uint32_t mask = 1u << (bit % 32);
            isRight = (atomicOr(seen + bit / 32, mask) & mask) == 0;
        }
        if (i > 0) {
            const float previous = float(outKeys[i - 1]);
            isRight = isRight &&
                    !answer.isBefore(key, id, previous, outIds[i - 1]);
        }
        if (!isRight) {
            states.isWrong[chunk.row] = 1;
        }
        before += answer.isBefore(key, id, last, lastId);
    }
    addOfWarp(states.placesBefore + chunk.row, before);
}

/// Counts the columns that come before the last place.
template <class T, class Id>
__global__ void countColumnsKernel(Answer<T, Id> answer, RowStates states) {
    const Chunk chunk = Chunk::of(warpOfGrid(), answer.cols);
    if (chunk.row >= answer.rows) {
        return;
    }
    const int64_t place = (chunk.row + 1) * answer.k - 1;
    const float last = float(answer.outKeys[place]);
    const int64_t lastId = answer.outIds[place];
    uint32_t before = 0;
    for (int64_t c = chunk.begin + threadIdx.x % kWarp; c < chunk.end;
         c += kWarp) {
        const float key = answer.keyAt(chunk.row, c);
        before += answer.isBefore(key, c, last, lastId);
    }
    addOfWarp(states.columnsBefore + chunk.row, before);
}

__global__ void countWrongKernel(
        RowStates states,
        int64_t rows,
        uint32_t* wrong) {
    const int64_t row = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (row < rows &&
        (states.isWrong[row] ||
         states.placesBefore[row] != states.columnsBefore[row])) {
        atomicAdd(wrong, 1u);
    }
}

/// Blocks with a warp for every chunk of the rows.
unsigned gridFor(int64_t rows, int64_t length) {
    const int64_t warps = rows * ((length + kChunk - 1) / kChunk);
    return unsigned((warps * kWarp + kThreads - 1) / kThreads);
}

template <class T, class Id>
void check(const SelectAnswer& a, uint32_t* seen, const RowStates& states) {
    const Answer<T, Id> answer{
            static_cast<const T*>(a.keys),
            a.rows,
            a.cols,
            a.stride,
            a.k,
            a.largest,
            a.lowerColumnFirst,
            static_cast<const T*>(a.outKeys),
            static_cast<const Id*>(a.outIds)};
    checkPlacesKernel<<<gridFor(a.rows, a.k), kThreads>>>(answer, seen, states);
    BITS_CUDA_CHECK(cudaGetLastError());
    countColumnsKernel<<<gridFor(a.rows, a.cols), kThreads>>>(answer, states);
    BITS_CUDA_CHECK(cudaGetLastError());
}

} // namespace

SelectCheck::SelectCheck(int64_t mostRows, int64_t mostKeys)
        : seen_((mostKeys + 31) / 32), state_(3 * mostRows + 1) {}

int64_t SelectCheck::wrongRows(const SelectAnswer& answer) {
    const size_t seenBytes = (answer.rows * answer.cols + 31) / 32 * 4;
    const size_t stateBytes = (3 * answer.rows + 1) * 4;
    BITS_CUDA_CHECK(cudaMemsetAsync(seen_.data(), 0, seenBytes));
    BITS_CUDA_CHECK(cudaMemsetAsync(state_.data(), 0, stateBytes));
    uint32_t* const wrong = state_.data();
    const RowStates states{
            wrong + 1, wrong + 1 + answer.rows, wrong + 1 + 2 * answer.rows};
    withType(answer.keys, answer.type, [&]<class T>(const T*) {
        if (answer.idType == IdType::Int32) {
            check<T, int32_t>(answer, seen_.data(), states);
        } else {
            check<T, int64_t>(answer, seen_.data(), states);
        }
    });
    countWrongKernel<<<
            unsigned((answer.rows + kThreads - 1) / kThreads),
            kThreads>>>(states, answer.rows, wrong);
    BITS_CUDA_CHECK(cudaGetLastError());
    uint32_t count = 0;
    BITS_CUDA_CHECK(
            cudaMemcpy(&count, wrong, sizeof(count), cudaMemcpyDeviceToHost));
    return count;
}

} // namespace faiss_bits::bench
