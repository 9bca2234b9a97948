/// The columns of a warp, whose estimates are sums of entries of its list's
/// table (IvfHeldTables.cuh).
///
/// Bound by: instructions, three for a look-up of 32 lanes, five for four
/// codes, and some 80 beside for 32 vectors; and waits for shared memory, as
/// there are four warps for each quarter of a multiprocessor.
#pragma once

#include "kernels/ivf/IvfBookLookUps.cuh"
#include "kernels/ivf/IvfCodeRing.cuh"
#include "kernels/ivf/IvfPartBanks.cuh"

namespace faiss_bits {

/// kPartDims: components of a part, 2, 4, 8 or 16.
template <Metric kMetric, int kPartDims>
struct IvfHeldColumns {
    using LookUps = IvfBookLookUps<kMetric>;
    using Banks = IvfPartBanks<kPartDims>;
    using Order = IvfPartOrder<kPartDims>;
    using Ring = IvfCodeRing<LookUps, Order>;

    const LookUps& lookUps;
    Ring ring;
    Banks banks;
    uint32_t tables;
    IvfKeptRow row;
    bool isFiltered;
    uint32_t at; // the warp's next columns

    __device__ __forceinline__ IvfHeldColumns(
            const LookUps& ofLists,
            const uint8_t* ofBlock,
            uint8_t* codes,
            uint32_t probe)
            : lookUps(ofLists),
              ring(ofLists, codes, probe),
              tables(__reduce_max_sync(kFullWarp, sharedAddress(ofBlock))),
              row(ofLists.params, ofLists.row),
              at(ofLists.begin + threadIdx.x / kWarpSize) {
        const IvfLists& all = ofLists.params.search.lists;
        isFiltered =
                all.selectedBits || all.idTest.kind != ListIdTest::Kind::None;
    }

    /// The warp's part of the block's list `probe`; table: Order::tableOf() of
    /// its first round. Lists come in their order.
    __device__ __forceinline__ void run(
            uint32_t probe,
            uint32_t table,
            float base) {
        const IvfLists& lists = lookUps.params.search.lists;
        const uint32_t last = lookUps.lastOf(probe);
        const uint32_t first = lookUps.lists.first[probe];
        uint32_t left = lookUps.leftOf(lookUps.vectorOf(at, probe), probe);
        for (; at < last; at += LookUps::kWarps) {
            uint32_t selected = ~0u;
            if (isFiltered) {
                selected = IvfGroupWords::ofWarp(
                        lists,
                        lookUps.lists.numbers[probe],
                        at - first,
                        lookUps.lists.lengths[probe]);
            }
            const float sum = sumOf(table, selected != 0);
            row.keep(
                    at,
                    ivf_code::keyOf<kMetric>(sum, base),
                    left > 0 && (selected >> threadIdx.x % kWarpSize & 1));
            left = LookUps::afterTurn(left);
        }
    }

   private:
    /// Of this lane's vector; isSelected: else it is not looked up.
    __device__ __forceinline__ float sumOf(uint32_t table, bool isSelected) {
        float sums[4] = {};
        int round = 0;
#pragma unroll 1
        do {
            const uint32_t codes = ring.take();
            if (isSelected) {
                const int parts = ring.numParts - round * Order::kSlots;
                banks.add(
                        codes,
                        parts > kIvfCodeBytes ? kIvfCodePieceBytes : 0,
                        tables,
                        table | Order::tableOf(0, round),
                        sums);
            }
            ring.drop();
            ++round;
        } while (round < Order::kRounds &&
                 round * Order::kSlots < ring.numParts);
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
};

} // namespace faiss_bits
