/// The scan of images of 8 bits on Hopper where queries stay in shared memory:
/// up to 512 dimensions, 256 queries x 128 vectors a step. One thread of a
/// warpgroup copies, four warpgroups multiply and compare 64 queries each:
/// while one compares, others multiply.
///
/// Bound by: not profiled.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/knn/fused/ByteSearch.h"
#include "kernels/knn/fused/tensor/BulkPipeline.cuh"
#include "kernels/knn/fused/tensor/ByteKeptTest.cuh"
#include "kernels/knn/fused/tensor/ByteRing.cuh"
#include "kernels/knn/fused/tensor/Wgmma.cuh"

namespace faiss_bits {

struct ByteKeptParams {
    TensorScanParams scan; // ByteScanParams::scan
    const int32_t* norms;  // ByteImage::norms
    int slots;             // of norms in shared memory
};

constexpr int kByteKeptGroups = 4;
constexpr int kByteKeptWidth = 128; // vectors of a step
constexpr int kByteKeptQueries = 64 * kByteKeptGroups;
static_assert(kByteKeptQueries == int(ByteSearch::kTileQueries));
constexpr int kByteKeptThreads = 128 * (kByteKeptGroups + 1);
constexpr int kByteKeptSteps = 4; // of 32 components in a slab

/// Offsets in a block's shared memory.
struct ByteKeptLayout {
    static constexpr int kMostStages = 8;
    static constexpr int kTileBytes = TensorImageLayout::kTileRows * 128;
    static constexpr int kQueryBytes = kByteKeptQueries * 128; // of a slab
    static constexpr int kNormBytes = kByteKeptWidth * sizeof(int32_t);
    static constexpr int kWords = 128; // PassedProducts
    static constexpr int kMostSlabs = kMostKeptByteComponents / 128;
    static_assert(kByteKeptWidth == TensorImageLayout::kTileRows);

    int slots;
    int stages;
    int norms;
    int passed;
    int barriers;
    int bytes;

    __host__ __device__ ByteKeptLayout(int slabs, int numStages) {
        slots = normSlots(slabs, numStages);
        stages = slabs * kQueryBytes;
        norms = stages + numStages * kTileBytes;
        passed = norms + slots * kNormBytes;
        barriers = passed + kByteKeptGroups * 4 * kWords * 8;
        bytes = barriers + 2 * (kMostStages + kMostSlabs) * 8;
    }
};

/// kLastSteps: of 32 components in the last slab, 1 to 4.
template <class Buffer, int kLastSteps>
struct ByteKeptBody {
    using Layout = ByteKeptLayout;

    const ByteKeptParams& params;
    Layout layout;
    uint8_t* shared;

    static_assert(Buffer::kEntries <= Layout::kWords);
    static constexpr int kWarps = 4 * kByteKeptGroups;

    __device__ __forceinline__ uint64_t* full(int stage) const {
        return reinterpret_cast<uint64_t*>(shared + layout.barriers) + stage;
    }
    __device__ __forceinline__ uint64_t* empty(int stage) const {
        return full(Layout::kMostStages + stage);
    }
    __device__ __forceinline__ uint64_t* queriesFull(int slab) const {
        return full(2 * Layout::kMostStages + slab);
    }
    __device__ __forceinline__ uint64_t* queriesEmpty(int slab) const {
        return queriesFull(Layout::kMostSlabs + slab);
    }
    __device__ __forceinline__ uint8_t* stageAt(int stage) const {
        return shared + layout.stages + stage * Layout::kTileBytes;
    }
    __device__ __forceinline__ uint8_t* normsAt(int slot) const {
        return shared + layout.norms + slot * Layout::kNormBytes;
    }

    __device__ __forceinline__ void run() {
        if (threadIdx.x == 0) {
            initRing(full(0), empty(0), Layout::kMostStages, kWarps);
            initRing(
                    queriesFull(0),
                    queriesEmpty(0),
                    Layout::kMostSlabs,
                    kWarps);
            fenceBarrierInit();
        }
        __syncthreads();
        allowNext();
        waitForPrevious();
        if (threadIdx.x < 128) {
            wgmma::lowerRegisters<24>();
            if (threadIdx.x == 0) {
                copy();
            }
        } else {
            wgmma::raiseRegisters<112>();
            consume();
        }
    }

    /// Calls take(tile of queries, first unit of vectors) for what is the
    /// block's; the others are `chunks` apart.
    template <class Take>
    __device__ __forceinline__ void forItems(const Take& take) const {
        const TensorScanParams& scan = params.scan;
        for (uint32_t item = blockIdx.x; item < scan.items; item += gridDim.x) {
            const uint32_t tile = item % scan.queryTiles;
            if (scan.tileCosts[tile] <= scan.mostTileCost) {
                take(tile, item / scan.queryTiles);
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
        uint32_t turn = 0; // of the queries
        forItems([&](uint32_t tile, uint32_t first) {
            for (int slab = 0; slab < scan.slabs; ++slab) {
                waitFor(queriesEmpty(slab), turn ^ 1);
                copyQueries(tile, slab);
            }
            turn ^= 1;
            for (uint32_t unit = first; unit < scan.units;
                 unit += scan.chunks) {
                const uint8_t* vectors = scan.vectors + unit * rowsBytes;
                for (int slab = 0; slab < scan.slabs; ++slab) {
                    uint64_t* barrier = full(stage.at);
                    waitFor(empty(stage.at), stage.parity ^ 1);
                    arriveExpecting(
                            barrier, kTileBytes + (slab == 0 ? kNormBytes : 0));
                    if (slab == 0) {
                        copyBulk(
                                normsAt(slot.at),
                                params.norms + size_t(unit) * kByteKeptWidth,
                                kNormBytes,
                                barrier);
                    }
                    copyBulk(
                            stageAt(stage.at),
                            vectors + size_t(slab) * kTileBytes,
                            kTileBytes,
                            barrier);
                    stage.next(scan.stages);
                }
                slot.next(params.slots);
            }
        });
    }

    __device__ __forceinline__ void copyQueries(uint32_t tile, int slab) const {
        constexpr int kTileBytes = Layout::kTileBytes;
        constexpr int kTiles = Layout::kQueryBytes / kTileBytes;
        arriveExpecting(queriesFull(slab), Layout::kQueryBytes);
        for (int i = 0; i < kTiles; ++i) {
            const size_t row = size_t(tile) * kTiles + i;
            copyBulk(
                    shared + (slab * kTiles + i) * kTileBytes,
                    params.scan.queries +
                            (row * params.scan.slabs + slab) * kTileBytes,
                    kTileBytes,
                    queriesFull(slab));
        }
    }

    __device__ __forceinline__ void consume() const {
        const TensorScanParams& scan = params.scan;
        // From lane 0, so that the compiler knows it to be the same in all.
        const int warp =
                __shfl_sync(kFullWarp, int(threadIdx.x) / kWarpSize - 4, 0);
        const int group = warp / 4;
        Buffer buffer(
                reinterpret_cast<uint64_t*>(shared + layout.passed) +
                        warp * Buffer::kEntries,
                scan);
        Test test;
        int32_t sums[1][kByteKeptWidth / 2];
        RingPlace stage;
        RingPlace slot;
        uint32_t turn = 0;
        forItems([&](uint32_t tile, uint32_t first) {
            const uint32_t row = tile * kByteKeptQueries + group * 64;
            test.start(scan, row + warp % 4 * 16 + threadIdx.x % kWarpSize / 4);
            const bool active = row < scan.numQueries;
            for (int slab = 0; slab < scan.slabs; ++slab) {
                waitFor(queriesFull(slab), turn);
            }
            const uint64_t a = wgmma::descriptor<128>(
                    sharedAddress(shared) + group * kGroupBytes);
            for (uint32_t unit = first; unit < scan.units;
                 unit += scan.chunks) {
                if (active) {
                    multiply(sums[0], a, stage);
                    test.run(
                            sums,
                            reinterpret_cast<const int32_t*>(normsAt(slot.at)),
                            unit * kByteKeptWidth,
                            buffer);
                } else {
                    for (int slab = 0; slab < scan.slabs; ++slab) {
                        waitFor(full(stage.at), stage.parity);
                        release(empty(stage.at));
                        stage.next(scan.stages);
                    }
                }
                slot.next(params.slots);
            }
            for (int slab = 0; slab < scan.slabs; ++slab) {
                release(queriesEmpty(slab));
            }
            turn ^= 1;
        });
        buffer.flush();
    }

   private:
    using Test = ByteKeptTest<kByteKeptWidth>;
    static constexpr int kGroupBytes = 64 * 128;

    /// sums = products of the group's queries and the next step's vectors.
    __device__ __forceinline__ void multiply(
            int32_t (&sums)[kByteKeptWidth / 2],
            uint64_t a,
            RingPlace& stage) const {
        constexpr int kSlabPieces = Layout::kQueryBytes / 16;
        const int last = params.scan.slabs - 1;
        int before = 0;
        for (int slab = 0; slab < last; ++slab) {
            multiplySlab<kByteKeptSteps>(
                    sums, a + slab * kSlabPieces, stage, slab > 0);
            // The slab before has been read.
            if (slab > 0) {
                wgmma::wait<1>();
                release(empty(before));
            }
            before = stage.at;
            stage.next(params.scan.stages);
        }
        multiplySlab<kLastSteps>(sums, a + last * kSlabPieces, stage, last > 0);
        wgmma::wait<0>();
        if (last > 0) {
            release(empty(before));
        }
        release(empty(stage.at));
        stage.next(params.scan.stages);
    }

    template <int kSteps>
    __device__ __forceinline__ void multiplySlab(
            int32_t (&sums)[kByteKeptWidth / 2],
            uint64_t a,
            const RingPlace& stage,
            bool add) const {
        waitFor(full(stage.at), stage.parity);
        const uint64_t b =
                wgmma::descriptor<128>(sharedAddress(stageAt(stage.at)));
        wgmma::fence();
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            wgmma::multiplyBytes(
                    sums, a + 2 * step, b + 2 * step, step > 0 || add);
        }
        wgmma::commit();
    }

    /// Each warp for itself.
    __device__ __forceinline__ void release(uint64_t* barrier) const {
        __syncwarp();
        if (threadIdx.x % kWarpSize == 0) {
            arrive(barrier);
        }
    }
};

} // namespace faiss_bits
