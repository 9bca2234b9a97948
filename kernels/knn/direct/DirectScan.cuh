/// Canonical distances of all pairs of a few queries and some vectors.
#pragma once

#include "kernels/device/WarpReduce.cuh"
#include "kernels/knn/certified/CanonicalPair.cuh"
#include "kernels/knn/direct/DirectVector.cuh"
#include "kernels/knn/direct/StagedVectors.cuh"

namespace faiss_bits {

/// How vectors come: each lane reads its own from memory, component by
/// component or, where it is short, 16 bytes at a time; or the warp copies them
/// to shared memory, 16 or 4 bytes at a time.
enum class DirectLoads { Own, Packed, Staged16, Staged4 };

/// Dimensions that Packed takes at most.
constexpr int kMostPackedDims = 16;

/// The slots of one vector and some queries.
template <Metric kMetric, int kQueries>
struct DirectSums {
    using Terms = canonical::Terms<kMetric>;
    static constexpr int kSlots = canonical::kSlots;

    double sums[kQueries][Terms::kSums][kSlots] = {};

    /// The term of a component of slot `slot`; the queries' lie `stride` apart.
    __device__ __forceinline__ void add(
            int slot,
            float value,
            const double* query,
            int stride) {
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            double slots[Terms::kSums];
#pragma unroll
            for (int j = 0; j < Terms::kSums; ++j) {
                slots[j] = sums[q][j][slot];
            }
            Terms::add(
                    slots,
                    double(value),
                    query[q * stride],
                    canonical::Power{});
#pragma unroll
            for (int j = 0; j < Terms::kSums; ++j) {
                sums[q][j][slot] = slots[j];
            }
        }
    }
};

/// A warp at work: a lane a vector.
template <Metric kMetric, int kQueries, class T, DirectLoads kLoads>
class DirectScan {
    using Sums = DirectSums<kMetric, kQueries>;
    static constexpr bool kPacked = kLoads == DirectLoads::Packed;
    static constexpr bool kStaged =
            kLoads == DirectLoads::Staged16 || kLoads == DirectLoads::Staged4;

   public:
    using Stages = StagedVectors<T, kLoads == DirectLoads::Staged4 ? 4 : 16>;
    /// Shared memory of a warp.
    static constexpr size_t kWarpBytes = kStaged ? Stages::kWarpBytes : 0;

    /// Components of a query in shared memory, with zeros behind.
    BITS_HOST_DEVICE static int paddedDims(int d) {
        constexpr int kStep = Stages::kDims;
        return (d + kStep - 1) / kStep * kStep;
    }

    __device__ DirectScan(
            const DirectScanParams& params,
            const double* queries,
            void* stages,
            uint32_t firstRow)
            : params_(params.search),
              out_(params.out),
              vectors_(static_cast<const T*>(params.search.vectors.data)),
              queries_(queries),
              stages_{static_cast<T*>(stages)},
              firstRow_(firstRow) {}

    /// The keys of a group and its least, by a warp. Returns the number of
    /// vectors.
    __device__ __forceinline__ uint32_t run(uint32_t group) const {
        uint64_t least[kQueries];
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            least[q] = kNoEntry;
        }
        const int64_t first = (int64_t(group) << out_.logUnits) * kDirectUnit;
        const uint32_t present = kStaged ? runStaged(first, least)
                : kPacked                ? runPacked(first, least)
                                         : runOwn(first, least);
        if (!out_.least) {
            return present;
        }
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            least[q] = leastOfWarp(least[q]);
            if (threadIdx.x % kWarpSize == 0 && firstRow_ + q < params_.rows) {
                out_.least[int64_t(firstRow_ + q) * out_.groups + group] =
                        least[q];
            }
        }
        return present;
    }

   private:
    /// This lane's vector of the unit at a place; -1 if there is none, or it is
    /// not allowed.
    __device__ __forceinline__ int32_t vectorOf(int64_t unit) const {
        return directVector(params_, out_, unit + threadIdx.x % kWarpSize);
    }

    /// Unit by unit from memory to registers.
    __device__ __forceinline__ uint32_t
    runOwn(int64_t first, uint64_t (&least)[kQueries]) const {
        constexpr int kAhead = 8; // loads in flight
        const int d = params_.d;
        const int padded = paddedDims(d);
        const uint32_t units = 1u << out_.logUnits;
        uint32_t present = 0;
        for (uint32_t u = 0; u < units; ++u) {
            const int64_t unit = first + u * kDirectUnit;
            const int32_t vector = vectorOf(unit);
            const T* x = vectors_ +
                    int64_t(max(vector, 0)) * params_.vectors.rowStride;
            Sums sums;
            for (int c = 0; c < d; c += kAhead) {
                float values[kAhead];
#pragma unroll
                for (int i = 0; i < kAhead; ++i) {
                    values[i] =
                            vector >= 0 && c + i < d ? toFloat(x[c + i]) : 0.0f;
                }
                // Components beyond d are zeros, which no sum notices.
#pragma unroll
                for (int i = 0; i < kAhead; ++i) {
                    sums.add(i, values[i], queries_ + c + i, padded);
                }
            }
            present += finishUnit(unit, vector, sums, least);
        }
        return present;
    }

    /// The next unit's vectors are on their way meanwhile.
    __device__ __forceinline__ uint32_t
    runPacked(int64_t first, uint64_t (&least)[kQueries]) const {
        constexpr int kPack = Stages::kPack;
        constexpr int kPacks = kMostPackedDims / kPack;
        const int d = params_.d;
        const int padded = paddedDims(d);
        const int64_t end = first + (int64_t(kDirectUnit) << out_.logUnits);
        uint4 next[kPacks];
        int32_t nextVector = -1;
        const auto load = [&](int64_t unit) {
            nextVector = unit < end ? vectorOf(unit) : -1;
            const T* x = vectors_ +
                    int64_t(max(nextVector, 0)) * params_.vectors.rowStride;
#pragma unroll
            for (int i = 0; i < kPacks; ++i) {
                next[i] = nextVector >= 0 && i * kPack < d
                        ? reinterpret_cast<const uint4*>(x)[i]
                        : make_uint4(0, 0, 0, 0);
            }
        };
        load(first);
        uint32_t present = 0;
        for (int64_t unit = first; unit < end; unit += kDirectUnit) {
            uint4 packs[kPacks];
#pragma unroll
            for (int i = 0; i < kPacks; ++i) {
                packs[i] = next[i];
            }
            const int32_t vector = nextVector;
            load(unit + kDirectUnit);
            Sums sums;
#pragma unroll
            for (int i = 0; i < kPacks; ++i) {
                if (i * kPack < d) {
                    float values[kPack];
                    Stages::unpack(packs[i], values);
#pragma unroll
                    for (int j = 0; j < kPack; ++j) {
                        const int c = i * kPack + j;
                        sums.add(
                                c % Sums::kSlots,
                                values[j],
                                queries_ + c,
                                padded);
                    }
                }
            }
            present += finishUnit(unit, vector, sums, least);
        }
        return present;
    }

    /// The stages of all units one after another.
    __device__ __forceinline__ uint32_t
    runStaged(int64_t first, uint64_t (&least)[kQueries]) const {
        constexpr int kDims = Stages::kDims;
        const int d = params_.d;
        const int padded = paddedDims(d);
        const int64_t end = first + (int64_t(kDirectUnit) << out_.logUnits);
        // What is copied next.
        int64_t nextUnit = first;
        int nextDim = 0;
        int nextStage = 0;
        int32_t nextVector = vectorOf(nextUnit);
        const auto copyNext = [&] {
            if (nextUnit < end) {
                stages_.copy(
                        nextStage,
                        vectors_,
                        params_.vectors.rowStride,
                        nextDim,
                        d,
                        nextVector);
                nextStage =
                        nextStage + 1 == Stages::kStages ? 0 : nextStage + 1;
                nextDim += kDims;
                if (nextDim >= d) {
                    nextDim = 0;
                    nextUnit += kDirectUnit;
                    nextVector = vectorOf(nextUnit);
                }
            }
            Stages::endCopy();
        };
#pragma unroll
        for (int i = 0; i < Stages::kStages - 1; ++i) {
            copyNext();
        }
        uint32_t present = 0;
        int stage = 0;
        for (int64_t unit = first; unit < end; unit += kDirectUnit) {
            Sums sums;
            for (int begin = 0; begin < d; begin += kDims) {
                Stages::wait();
                // To the stage that all lanes have left.
                copyNext();
#pragma unroll
                for (int c = 0; c < kDims; c += Sums::kSlots) {
                    if (begin + c < d) {
                        addSlots(stage, c, begin, padded, sums);
                    }
                }
                stage = stage + 1 == Stages::kStages ? 0 : stage + 1;
            }
            present += finishUnit(unit, vectorOf(unit), sums, least);
        }
        // The next group begins with the first stage.
        __syncwarp();
        return present;
    }

    /// Components begin + c .. begin + c + 7.
    __device__ __forceinline__ void addSlots(
            int stage,
            int c,
            int begin,
            int padded,
            Sums& sums) const {
        constexpr int kPack = Stages::kPack;
#pragma unroll
        for (int i = 0; i < Sums::kSlots; i += kPack) {
            float values[kPack];
            stages_.read(stage, c + i, values);
#pragma unroll
            for (int j = 0; j < kPack; ++j) {
                sums.add(
                        i + j, values[j], queries_ + begin + c + i + j, padded);
            }
        }
    }

    /// The keys of a unit.
    __device__ __forceinline__ uint32_t finishUnit(
            int64_t unit,
            int32_t vector,
            const Sums& sums,
            uint64_t (&least)[kQueries]) const {
#pragma unroll
        for (int q = 0; q < kQueries; ++q) {
            const uint64_t entry = vector >= 0
                    ? distanceEntry<kMetric>(
                              canonical::joinSlots<typename Sums::Terms>(
                                      sums.sums[q]),
                              uint32_t(vector))
                    : kNoEntry;
            least[q] = min(least[q], entry);
            if (firstRow_ + q < params_.rows) {
                out_
                        .keys[int64_t(firstRow_ + q) * out_.stride + unit +
                              threadIdx.x % kWarpSize] = entryKey(entry);
            }
        }
        return __popc(__ballot_sync(kFullWarp, vector >= 0));
    }

    const CertifiedParams& params_;
    const DirectKeys& out_;
    const T* vectors_;
    const double* queries_; // [kQueries, paddedDims(d)]
    const Stages stages_;
    const uint32_t firstRow_;
};

/// A warp a group; kQueries queries a block (y).
template <Metric kMetric, int kQueries, class T, DirectLoads kLoads>
__global__ __launch_bounds__(128) void directScanKernel(
        const __grid_constant__ DirectScanParams params) {
    using Scan = DirectScan<kMetric, kQueries, T, kLoads>;
    extern __shared__ __align__(16) double queries[];
    allowNext();
    waitForPrevious();
    const CertifiedParams& search = params.search;
    const uint32_t firstRow = blockIdx.y * kQueries;
    const int padded = Scan::paddedDims(search.d);
    for (int i = threadIdx.x; i < kQueries * padded; i += blockDim.x) {
        const uint32_t row = firstRow + i / padded;
        const int c = i % padded;
        queries[i] = row < search.rows && c < search.d
                ? double(search.queries[int64_t(row) * search.d + c])
                : 0.0;
    }
    __syncthreads();
    const uint32_t warps = blockDim.x / kWarpSize;
    const uint32_t warp = threadIdx.x / kWarpSize;
    auto* stages = reinterpret_cast<uint8_t*>(queries + kQueries * padded) +
            warp * Scan::kWarpBytes;
    const Scan scan(params, queries, stages, firstRow);
    uint32_t scored = 0;
    for (uint32_t group = blockIdx.x * warps + warp; group < params.out.groups;
         group += gridDim.x * warps) {
        scored += scan.run(group);
    }
    if (search.numRescored && threadIdx.x % kWarpSize == 0 && scored > 0) {
        const uint32_t rows = min(uint32_t(kQueries), search.rows - firstRow);
        atomicAdd(search.numRescored, (unsigned long long)scored * rows);
    }
}

} // namespace faiss_bits
