/// The scan of images of 8 bits on Hopper. As WgmmaScan.cuh where queries
/// stream: one thread of a warpgroup copies, two warpgroups multiply and
/// compare 64 queries and 256 vectors each. Sums are integers, and exact; each
/// becomes a float32 number, to which the norm is added, before it is compared:
/// three instructions a value, which long vectors hide.
///
/// Bound by: products, as far as is known; not profiled.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/fused/ByteSearch.h"
#include "kernels/knn/fused/tensor/BulkPipeline.cuh"
#include "kernels/knn/fused/tensor/ByteRing.cuh"
#include "kernels/knn/fused/tensor/ByteScan.h"
#include "kernels/knn/fused/tensor/LimitTest.cuh"
#include "kernels/knn/fused/tensor/Wgmma.cuh"

namespace faiss_bits {

constexpr int kByteGroups = 2;
constexpr int kByteWidth = 256; // vectors of a step
constexpr int kByteQueries = 64 * kByteGroups;
static_assert(int(ByteSearch::kTileQueries) % kByteQueries == 0);

/// Offsets in a block's shared memory.
struct ByteSharedLayout {
    static constexpr int kMostStages = 8;
    static constexpr int kTileBytes = TensorImageLayout::kTileRows * 128;
    static constexpr int kStageBytes = 3 * kTileBytes; // queries and vectors
    static constexpr int kNormBytes = kByteWidth * sizeof(float);
    static constexpr int kWords = 128; // PassedProducts

    int slots;
    int norms;
    int passed;
    int barriers;
    int bytes;

    __host__ __device__ ByteSharedLayout(int slabs, int stages) {
        slots = normSlots(slabs, stages);
        norms = stages * kStageBytes;
        passed = norms + slots * kNormBytes;
        barriers = passed + kByteGroups * 4 * kWords * 8;
        bytes = barriers + 2 * kMostStages * 8;
    }
};

/// LimitTest of what passes by the keys of bytes.
class ByteTest : public LimitTest<ScanNorms::None, 1, kByteWidth, 64> {
   public:
    __device__ __forceinline__ void start(
            const TensorScanParams& params,
            uint32_t row) {
        constexpr float kMost = 3.402823466e+38f;
        row_ = row;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const uint32_t i = row + 8 * r;
            const bool present = i < params.numQueries;
            limits_[r] = present
                    ? params.queryNorms[i] - params.passed.limits[i]
                    : kTakesNothing;
            // Infinity is for rows that take nothing; NaN stays.
            if (present && limits_[r] > kMost) {
                limits_[r] = kMost;
            }
            factors_[r] = present
                    ? 2.0f * (params.facts->inverse * params.inverses[i])
                    : 0.0f;
        }
    }

    /// 2 <x', q'> - |x|^2 of the sums; norms: of the step's vectors.
    __device__ __forceinline__ void addNorms(
            const int32_t (&sums)[kByteWidth / 2],
            const float* norms,
            float (&values)[1][kByteWidth / 2]) const {
        const auto* mine = reinterpret_cast<const float2*>(norms) +
                threadIdx.x % kRowLanes;
#pragma unroll
        for (int j = 0; j < kByteWidth / 8; ++j) {
            const float2 norm = mine[4 * j];
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                const int at = 4 * j + 2 * r;
                values[0][at] = fmaf(factors_[r], float(sums[at]), -norm.x);
                values[0][at + 1] =
                        fmaf(factors_[r], float(sums[at + 1]), -norm.y);
            }
        }
    }
};

template <class Buffer>
struct ByteScanBody {
    using Layout = ByteSharedLayout;

    const ByteScanParams& params;
    Layout layout;
    uint8_t* shared;

    __device__ __forceinline__ uint64_t* full(int stage) const {
        return reinterpret_cast<uint64_t*>(shared + layout.barriers) + stage;
    }
    __device__ __forceinline__ uint64_t* empty(int stage) const {
        return full(Layout::kMostStages + stage);
    }
    __device__ __forceinline__ uint8_t* stageAt(int stage) const {
        return shared + stage * Layout::kStageBytes;
    }
    __device__ __forceinline__ uint8_t* normsAt(int slot) const {
        return shared + layout.norms + slot * Layout::kNormBytes;
    }

    __device__ __forceinline__ void run() {
        if (threadIdx.x == 0) {
            initRing(full(0), empty(0), Layout::kMostStages, 4 * kByteGroups);
            fenceBarrierInit();
        }
        __syncthreads();
        allowNext();
        waitForPrevious();
        if (threadIdx.x < 128) {
            wgmma::lowerRegisters<40>();
            if (threadIdx.x == 0) {
                copy();
            }
        } else {
            wgmma::raiseRegisters<232>();
            consume();
        }
    }

    /// Calls take(tile of queries, unit of vectors) for what is the block's.
    template <class Start, class Take>
    __device__ __forceinline__ void forItems(
            const Start& start,
            const Take& take) const {
        const TensorScanParams& scan = params.scan;
        for (uint32_t item = blockIdx.x; item < scan.items; item += gridDim.x) {
            const uint32_t tile = item % scan.queryTiles;
            if (scan.tileCosts[tile * kByteQueries / ByteSearch::kTileQueries] >
                scan.mostTileCost) {
                continue;
            }
            start(tile);
            for (uint32_t unit = item / scan.queryTiles; unit < scan.units;
                 unit += scan.chunks) {
                take(tile, unit);
            }
        }
    }

    /// One thread calls it.
    __device__ __forceinline__ void copy() const {
        constexpr int kTileBytes = Layout::kTileBytes;
        constexpr int kNormBytes = Layout::kNormBytes;
        const TensorScanParams& scan = params.scan;
        const size_t rowsBytes = size_t(scan.slabs) * kTileBytes; // of a tile
        RingPlace stage;
        RingPlace slot;
        forItems(
                [](uint32_t) {},
                [&](uint32_t tile, uint32_t unit) {
                    const uint8_t* queries = scan.queries + tile * rowsBytes;
                    const uint8_t* vectors =
                            scan.vectors + 2 * unit * rowsBytes;
                    for (int slab = 0; slab < scan.slabs; ++slab) {
                        uint64_t* barrier = full(stage.at);
                        waitFor(empty(stage.at), stage.parity ^ 1);
                        arriveExpecting(
                                barrier,
                                Layout::kStageBytes +
                                        (slab == 0 ? kNormBytes : 0));
                        if (slab == 0) {
                            copyBulk(
                                    normsAt(slot.at),
                                    scan.norms + size_t(unit) * kByteWidth,
                                    kNormBytes,
                                    barrier);
                        }
                        uint8_t* to = stageAt(stage.at);
                        const size_t at = size_t(slab) * kTileBytes;
                        copyBulk(to, queries + at, kTileBytes, barrier);
                        copyBulk(
                                to + kTileBytes,
                                vectors + at,
                                kTileBytes,
                                barrier);
                        copyBulk(
                                to + 2 * kTileBytes,
                                vectors + rowsBytes + at,
                                kTileBytes,
                                barrier);
                        stage.next(scan.stages);
                    }
                    slot.next(params.slots);
                });
    }

    __device__ __forceinline__ void consume() const {
        constexpr int kGroupBytes = 64 * 128;
        constexpr int kSteps = 4; // of 32 components in a slab
        const TensorScanParams& scan = params.scan;
        // From lane 0, so that the compiler knows it to be the same in all.
        const int warp =
                __shfl_sync(kFullWarp, int(threadIdx.x) / kWarpSize - 4, 0);
        const int group = warp / 4;
        Buffer buffer(
                reinterpret_cast<uint64_t*>(shared + layout.passed) +
                        warp * Buffer::kEntries,
                scan);
        static_assert(Buffer::kEntries <= Layout::kWords);
        ByteTest test;
        int32_t sums[kByteWidth / 2];
        RingPlace stage;
        RingPlace slot;
        const auto start = [&](uint32_t tile) {
            test.start(
                    scan,
                    tile * kByteQueries + group * 64 + warp % 4 * 16 +
                            threadIdx.x % kWarpSize / 4);
        };
        forItems(start, [&](uint32_t, uint32_t unit) {
        // Old sums end here: as operands of products that do not add to
        // them, they would stay in registers beside their values.
#pragma unroll
            for (int32_t& sum : sums) {
                sum = 0;
            }
            int before = 0;
            for (int slab = 0; slab < scan.slabs; ++slab) {
                waitFor(full(stage.at), stage.parity);
                const uint32_t at = sharedAddress(stageAt(stage.at));
                const uint64_t a =
                        wgmma::descriptor<128>(at + group * kGroupBytes);
                const uint64_t b =
                        wgmma::descriptor<128>(at + Layout::kTileBytes);
                wgmma::fence();
#pragma unroll
                for (int step = 0; step < kSteps; ++step) {
                    wgmma::multiplyBytes(sums, a + 2 * step, b + 2 * step);
                }
                wgmma::commit();
                // The slab before has been read.
                if (slab > 0) {
                    wgmma::wait<1>();
                    release(before);
                }
                before = stage.at;
                stage.next(scan.stages);
            }
            wgmma::wait<0>();
            release(before);
            float values[1][kByteWidth / 2];
            test.addNorms(
                    sums,
                    reinterpret_cast<const float*>(normsAt(slot.at)),
                    values);
            slot.next(params.slots);
            test.run(values, nullptr, unit * kByteWidth, buffer);
        });
        buffer.flush();
    }

    /// Each warp for itself.
    __device__ __forceinline__ void release(int stage) const {
        __syncwarp();
        if (threadIdx.x % kWarpSize == 0) {
            arrive(empty(stage));
        }
    }
};

} // namespace faiss_bits
