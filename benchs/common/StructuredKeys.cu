#include "benchs/common/StructuredKeys.h"

#include <algorithm>
#include <stdexcept>

#include <cub/block/block_scan.cuh>

#include "benchs/common/KeyFormulas.cuh"
#include "benchs/common/KeyTypes.cuh"
#include "kernels/common/CudaCheck.h"
#include "kernels/select/threshold/SamplePlaces.h"

namespace faiss_bits::bench {

namespace {

constexpr int kBlocks = 2048;
constexpr int kThreads = 256;

void wait() {
    BITS_CUDA_CHECK(cudaGetLastError());
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
}

template <class T, class Formula>
__global__ void fillKernel(
        T* keys,
        uint32_t count,
        uint32_t cols,
        uint64_t seed,
        Formula formula) {
    const uint64_t threads = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += threads) {
        const uint32_t row = uint32_t(i) / cols;
        const uint32_t c = uint32_t(i) % cols;
        keys[i] = T(formula(hashOf(seed, row), c));
    }
}

/// One block a row, tile by tile: each key is made of the states of all columns
/// up to its own.
template <int Threads, class T, class Formula>
__global__ void __launch_bounds__(Threads) fillByScanKernel(
        T* keys,
        uint32_t rows,
        uint32_t cols,
        uint64_t seed,
        Formula formula) {
    constexpr int kItems = 8;
    using State = typename Formula::State;
    using Scan = cub::BlockScan<State, Threads>;
    __shared__ typename Scan::TempStorage storage;
    for (uint32_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const uint64_t hash = hashOf(seed, row);
        T* to = keys + uint64_t(row) * cols;
        State before = Formula::kNone;
        for (uint32_t begin = 0; begin < cols; begin += Threads * kItems) {
            const uint32_t first = begin + threadIdx.x * kItems;
            State states[kItems];
            for (int i = 0; i < kItems; ++i) {
                states[i] = first + i < cols ? formula.at(hash, first + i)
                                             : Formula::kNone;
            }
            State all;
            Scan(storage).InclusiveScan(states, states, formula, all);
            for (int i = 0; i < kItems && first + i < cols; ++i) {
                const State state = formula(before, states[i]);
                to[first + i] = T(formula.key(hash, first + i, state));
            }
            before = formula(before, all);
            __syncthreads();
        }
    }
}

/// Writes begin + u / 2 to the columns that the samples of the rows draw.
template <class T>
__global__ void fillSampledKernel(
        T* keys,
        uint32_t rows,
        uint32_t cols,
        uint64_t seed,
        SampleLayout sample,
        float begin) {
    constexpr uint32_t kLanes = SamplePlaces::kThreads;
    const uint32_t draws = sample.threads * sample.places * sample.parts;
    const uint64_t count = uint64_t(rows) * draws;
    const uint64_t threads = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += threads) {
        const uint32_t row = uint32_t(i / draws);
        const uint32_t draw = uint32_t(i % draws);
        const SamplePlaces places(
                cols, sample.threads, sample.places, sample.parts, row);
        const uint32_t first = places.at(draw / kLanes, draw % kLanes).column;
        const uint64_t hash = hashOf(seed, row);
        for (int j = 0; j < kSampleItems; ++j) {
            keys[uint64_t(row) * cols + first + j] =
                    T(begin + uniform(hashOf(hash ^ 1, first + j)) / 2);
        }
    }
}

template <class T>
__global__ void negateKernel(T* keys, int64_t count) {
    const int64_t threads = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count;
         i += threads) {
        const float key = float(keys[i]);
        if (key == key) {
            keys[i] = T(-key);
        }
    }
}

template <class T>
__global__ void spreadKernel(
        const T* from,
        T* to,
        int64_t rows,
        int64_t cols,
        int64_t stride) {
    const int64_t threads = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
         i < rows * stride;
         i += threads) {
        const int64_t c = i % stride;
        to[i] = c < cols ? from[i / stride * cols + c]
                         : T(__uint_as_float(0x7FFFFFFFu));
    }
}

/// Exponents of the least and the greatest number of a type.
template <class T>
constexpr AnyExponent kExponents{-149, 128};
template <>
constexpr AnyExponent kExponents<__half>{-24, 16};
template <>
constexpr AnyExponent kExponents<__nv_bfloat16>{-133, 128};

template <class T>
class Filler {
   public:
    Filler(T* keys, const KeyRecipe& recipe)
            : keys_(keys),
              recipe_(recipe),
              rows_(uint32_t(recipe.rows)),
              cols_(uint32_t(recipe.cols)) {}

    void fill() const {
        switch (recipe_.order) {
            case Order::Clustered:
                return byScan(Clusters{});
            case Order::RandomWalk:
                return byScan(Walk{});
            case Order::SawTooth:
                return by(SawTooth{cols_});
            case Order::OrganPipe:
                return by(OrganPipe{cols_});
            case Order::BestRun:
                return by(BestRun{cols_, uint32_t(recipe_.k)});
            case Order::Periodic:
                return by(Periodic{cols_});
            case Order::HeavyTail:
                return by(HeavyTail{});
            case Order::Exponents:
                return by(kExponents<T>);
            case Order::MostlyInf:
                return by(MostlyInf{});
            case Order::AdversaryBest:
                return bySample(0.5f, 0.0f);
            case Order::AdversaryWorst:
                return bySample(0.0f, 0.5f);
            default:
                throw std::invalid_argument(
                        "order = " + nameOf(recipe_.order) +
                        ": not from a formula");
        }
    }

   private:
    template <class Formula>
    void by(Formula formula) const {
        fillKernel<<<kBlocks, kThreads>>>(
                keys_, rows_ * cols_, cols_, recipe_.seed, formula);
    }

    template <class Formula>
    void byScan(Formula formula) const {
        const unsigned blocks = std::min(rows_, 1u << 16);
        if (cols_ <= 1024) {
            fillByScanKernel<64><<<blocks, 64>>>(
                    keys_, rows_, cols_, recipe_.seed, formula);
        } else {
            fillByScanKernel<1024><<<blocks, 1024>>>(
                    keys_, rows_, cols_, recipe_.seed, formula);
        }
    }

    /// Uniform from `others` on, save from `sampled` on where the sample looks.
    void bySample(float others, float sampled) const {
        by(HalfRange{others});
        fillSampledKernel<<<kBlocks, kThreads>>>(
                keys_, rows_, cols_, recipe_.seed, recipe_.sample, sampled);
    }

    T* keys_;
    const KeyRecipe& recipe_;
    uint32_t rows_;
    uint32_t cols_;
};

bool placesBest(Order order) {
    return order == Order::BestRun || order == Order::AdversaryBest ||
            order == Order::AdversaryWorst;
}

} // namespace

void fillKeys(void* keys, const KeyRecipe& recipe) {
    const int64_t count = recipe.rows * recipe.cols;
    const bool isAdversary = recipe.order == Order::AdversaryBest ||
            recipe.order == Order::AdversaryWorst;
    if (count > 0xFFFFFFFFll) {
        throw std::invalid_argument("more than 2^32 - 1 keys");
    }
    if (isPlain(recipe.order) || (isAdversary && recipe.sample.places == 0)) {
        fillKeys(
                keys,
                recipe.type,
                recipe.rows,
                recipe.cols,
                isAdversary ? Order::Random : recipe.order,
                recipe.seed);
        return;
    }
    withType(keys, recipe.type, [&]<class T>(T* typed) {
        Filler<T>(typed, recipe).fill();
    });
    wait();
    if (recipe.largest && placesBest(recipe.order)) {
        negateKeys(keys, recipe.type, count);
    }
}

void negateKeys(void* keys, DataType type, int64_t count) {
    withType(keys, type, [&](auto* typed) {
        negateKernel<<<kBlocks, kThreads>>>(typed, count);
    });
    wait();
}

void spreadRows(
        const void* from,
        void* to,
        DataType type,
        int64_t rows,
        int64_t cols,
        int64_t stride) {
    withType(to, type, [&]<class T>(T* typed) {
        spreadKernel<<<kBlocks, kThreads>>>(
                static_cast<const T*>(from), typed, rows, cols, stride);
    });
    wait();
}

} // namespace faiss_bits::bench
