/// The warpgroup of PassAtOnce.cuh that copies vectors and makes images.
#pragma once

#include "kernels/knn/fused/tensor/PassAtOnceShape.cuh"

namespace faiss_bits::at_once {

template <int kPerGroup, int kSlabs, int kOwnStrips>
struct Producers {
    using S = Shape<kPerGroup, kSlabs, kOwnStrips>;

    const Params& params;
    Shared<kPerGroup, kSlabs, kOwnStrips>& shared;

    /// warp: of the warpgroup.
    __device__ __forceinline__ void run(int warp) const {
        if constexpr (S::kStreamed > 0) {
            if (warp > 0) {
                makeImages(warp - 1);
            } else if (threadIdx.x == 0) {
                copyVectors();
            }
        } else {
            if (threadIdx.x == 0) {
                copyVectors();
            }
            __syncwarp();
            makeImages(warp);
        }
    }

    __device__ __forceinline__ const uint8_t* slabAt(int place) const {
        const int group = place % kConsumerGroups;
        const int slab = place / kConsumerGroups % kSlabs;
        const int unit = place / kConsumerGroups / kSlabs;
        return params.vectors +
                ((group * kPerGroup + unit) * kSlabs + slab) * kSlabBytes;
    }

    /// One thread: the vectors that stay, then the others for each tile.
    __device__ __forceinline__ void copyVectors() const {
        constexpr uint32_t kNormBytes = sizeof(shared.norms);
        arriveExpecting(
                &shared.residentFull, S::kResident * kSlabBytes + kNormBytes);
        copyBulk(shared.norms, params.norms, kNormBytes, &shared.residentFull);
        for (int place = 0; place < S::kResident; ++place) {
            copyBulk(
                    shared.slabs[place],
                    slabAt(place),
                    kSlabBytes,
                    &shared.residentFull);
        }
        if constexpr (S::kStreamed > 0) {
            RingPlace slot;
            RingPlace turns[kConsumerGroups];
            for (uint32_t tile = blockIdx.x; tile < params.tiles;
                 tile += gridDim.x) {
#pragma unroll
                for (int i = 0; i < S::kStreamed; ++i) {
                    const int place = S::kResident + i;
                    const int group = place % kConsumerGroups;
                    uint64_t* const full =
                            &shared.slotFull[group][turns[group].at];
                    waitFor(&shared.slotEmpty[slot.at], slot.parity ^ 1);
                    arriveExpecting(full, kSlabBytes);
                    copyBulk(
                            shared.slabs[S::kResident + slot.at],
                            slabAt(place),
                            kSlabBytes,
                            full);
                    slot.next(S::kSlots);
                    turns[group].next(3);
                }
            }
        }
    }

    /// A warp's part of the tiles' images.
    __device__ __forceinline__ void makeImages(int warp) const {
        using Rows = QueryRows<kSlabs>;
        const Rows rows(params.queries);
        const TensorImageFacts facts = *params.queries.vectorFacts;
        RingPlace buffer;
        for (uint32_t tile = blockIdx.x; tile < params.tiles;
             tile += gridDim.x) {
            if (warp == 0) {
                params.queries.prefetch(
                        (tile + gridDim.x) * kQueries, kQueries);
            }
            const auto firstOf = [&](int turn) {
                return (turn * S::kImageWarps + warp) * Rows::kTogether;
            };
            typename Rows::Sums own;
            constexpr int kTurns = // the last one of some warps alone
                    (kQueries / Rows::kTogether + S::kImageWarps - 1) /
                    S::kImageWarps;
            const int turns =
                    firstOf(kTurns - 1) < kQueries ? kTurns : kTurns - 1;
            const auto read = [&](int turn, auto& pieces) {
                rows.read(tile * kQueries + firstOf(turn), pieces);
            };
            const auto make = [&](int turn, auto& pieces) {
                rows.make(
                        tile * kQueries + firstOf(turn),
                        firstOf(turn),
                        turn,
                        pieces,
                        shared.images[buffer.at],
                        own);
            };
            typename Rows::Pieces pieces;
            read(0, pieces);
            if constexpr (S::kReadsAhead) {
                static_assert(kTurns == 2 && S::kImageWarps == 4);
                typename Rows::Pieces next;
                read(1, next);
                waitFor(&shared.imageEmpty[buffer.at], buffer.parity ^ 1);
                make(0, pieces);
                make(1, next);
            } else {
                waitFor(&shared.imageEmpty[buffer.at], buffer.parity ^ 1);
#pragma unroll 1
                for (int turn = 0; turn < turns; ++turn) {
                    if (turn > 0) {
                        read(turn, pieces);
                    }
                    make(turn, pieces);
                }
            }
            rows.writeFacts(
                    turns,
                    own,
                    firstOf,
                    [&](uint32_t row, const QueryFacts& ofQuery) {
                        writeRow(buffer.at, tile, row, ofQuery, facts);
                    });
            // Products read what these threads wrote.
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            arrive(&shared.imageFull[buffer.at]);
            buffer.next(2);
        }
    }

    /// Of one row of a tile: what consumers and later kernels want to know.
    __device__ __forceinline__ void writeRow(
            int buffer,
            uint32_t tile,
            uint32_t row,
            const QueryFacts& facts,
            const TensorImageFacts& image) const {
        shared.scales[buffer][row] = scalesOf(facts, image);
        shared.errors[buffer][row] = errorOf(params, facts, image);
        const uint32_t query = tile * kQueries + row;
        if (query < params.queries.n) {
            params.queries.outNorms[query] = facts.norm;
            params.queries.outResiduals[query] = facts.residual;
        }
    }
};

} // namespace faiss_bits::at_once
