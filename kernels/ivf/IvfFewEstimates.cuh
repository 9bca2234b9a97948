/// Bounds of keys where few queries probe a list: those of IvfEstimates.cuh,
/// bit by bit, with a warp in the place of a block.
///
/// A warp takes up to 16 or 32 queries of a list and 128 of its vectors. The
/// queries lie in shared memory, converted once, and vectors stream through
/// registers. No warp waits for another one, so that what one waits for others
/// hide: a block of IvfEstimates.cuh holds its vectors in registers and waits
/// for each read on the way there, which pays where a list's queries fill many
/// tiles.
///
/// Bound by: instructions that decode, and one read of the lists; of product
/// codes by look-ups in shared memory, where the whole codebook stays for all
/// lists.
#pragma once

#include <type_traits>

#include "kernels/ivf/IvfCodeProducts.cuh"
#include "kernels/ivf/IvfDecodedProducts.cuh"
#include "kernels/ivf/IvfEstimateProducts.cuh"
#include "kernels/ivf/IvfFewTables.cuh"
#include "kernels/ivf/IvfFilter.cuh"

namespace faiss_bits {

/// kQueries: of a tile.
template <Metric kMetric, class Vectors, int kQueries>
struct IvfFewEstimates {
    static constexpr ListCoding kCoding = Vectors::kCoding;
    using Shape = IvfFewShape<kCoding, kQueries>;
    static constexpr bool kHoldsRows = kCoding == ListCoding::Product &&
            Vectors::kLayout == ListLayout::Rows;
    using Reads = IvfVectorReads;
    using Order = IvfTileOrder<kQueries, kIvfFewVectors>;
    static constexpr int kAcross = kQueries / 8; // products of 8 queries
    static constexpr bool kMultipliesCodes =
            multipliesCodes<kMetric, kCoding>(Vectors::kLayout);
    using Tables = std::conditional_t<
            kMultipliesCodes,
            IvfCodeTables<Vectors, Shape::kDepth>,
            IvfFewTables<Vectors, Shape::kDepth>>;
    using Queries = IvfFewTile<kMetric, Shape>;
    using Products =
            IvfEstimateProducts<kMetric, Queries, IvfFewVectorTerms, kAcross>;

    using Decoded =
            IvfDecodedProducts<kMetric, Shape, Queries, Tables, Products>;

    struct WarpStorage {
        typename Queries::SharedStorage queries;
        typename Tables::Storage tables;
    };
    struct SharedStorage {
        alignas(16) float codebook[Shape::kCodebookFloats];
        WarpStorage warps[Shape::kWarps];
    };

    SharedStorage& shared;
    const IvfParams& params;
    Queries queries;
    Tables tables;
    IvfFewVectorTerms vectors;
    Products products;

    __device__ __forceinline__
    IvfFewEstimates(SharedStorage& shared, const IvfParams& params)
            : shared(shared),
              params(params),
              queries{ofWarp(shared).queries, params},
              tables(ofWarp(shared).tables) {}

    __device__ __forceinline__ void run() {
        if constexpr (Shape::kHasCodebook) {
            copyCodebookSlices<Vectors, Shape>(params, shared.codebook);
        }
        const Order order{params};
        const uint32_t tiles = order.numTiles();
        // The first tile of a warp is its own; then they are dealt out as warps
        // are done, or some would have one more than others.
        const uint32_t warps = gridDim.x * Shape::kWarps;
        for (uint32_t tile =
                     blockIdx.x * Shape::kWarps + threadIdx.x / kWarpSize;
             tile < tiles;) {
            uint32_t dealt = 0;
            if (threadIdx.x % kWarpSize == 0) {
                dealt = atomicAdd(params.counts + params.lists.numLists, 1u);
            }
            runTile(order.workOf(tile, tiles));
            tile = warps + __shfl_sync(kFullWarp, dealt, 0);
            __syncwarp(); // its shared memory is read
        }
    }

   private:
    __device__ __forceinline__ static WarpStorage& ofWarp(
            SharedStorage& shared) {
        return shared.warps[threadIdx.x / kWarpSize];
    }

    __device__ __forceinline__ Decoded decodedOf() {
        return {params, queries, tables, products, vectors, shared.codebook};
    }

    __device__ __forceinline__ void runTile(const IvfWork& work) {
        const Vectors list(params);
        const ListTables<Vectors> from(list, work.place, params);
        if constexpr (kMultipliesCodes) {
            tables.read(
                    from,
                    static_cast<const uint8_t*>(work.place.list),
                    params.d);
        } else {
            tables.read(from);
        }
        const int numRows =
                int(min(work.place.numRows, uint32_t(Shape::kQueries)));
        queries.look(work, numRows);
        __syncwarp();
        if constexpr (kHoldsRows) {
            const ProductDecoder decoder(params);
            if (HeldProductRows::suits(decoder, params, work.place)) {
                runHeldRows(decoder, work, numRows);
                return;
            }
        }
        queries.convert(numRows, tables);
        __syncwarp();
        if constexpr (kMultipliesCodes) {
            runCodes(work, numRows);
        } else {
            runDecoded(list, work, numRows);
        }
    }

    __device__ __forceinline__ void runDecoded(
            const Vectors& list,
            const IvfWork& work,
            int numRows) {
        runGroups(work, numRows, [&](uint32_t column) {
            float slack = 0;
            withBlocks(
                    list,
                    groupOf(work, column),
                    Reads::firstVector(),
                    numVectorsOf(work, column),
                    params,
                    Reads::component(),
                    [&](const auto& blocks) {
                        slack = decodedOf().multiply(
                                blocks, numVectorsOf(work, column));
                    });
            return slack;
        });
    }

    /// First codes of a group are on their way while bounds of the group before
    /// are written.
    __device__ __forceinline__ void runCodes(const IvfWork& work, int numRows) {
        const int c = Reads::component();
        const auto readsOf = [&](uint32_t column) {
            const int64_t first = groupOf(work, column).first;
            return CodeReads{
                    static_cast<const uint8_t*>(work.place.list) +
                            first * params.d + c * kListGroup +
                            Reads::firstVector(),
                    params.d - c};
        };
        IvfCodeProducts<Queries, Tables, Products> codes{
                params, queries, tables, products, vectors};
        CodeReads next = readsOf(uint32_t(work.place.first));
        codes.readFirst(next);
        runGroups(work, numRows, [&](uint32_t column) {
            const float slack =
                    codes.multiply(next, numVectorsOf(work, column), numRows);
            if (column + kIvfGroup < endOf(work)) {
                next = readsOf(column + kIvfGroup);
                codes.readFirst(next);
            }
            return slack;
        });
    }

    /// Codes of a group are on their way while the queries are converted, or
    /// those of the group before are used.
    __device__ __forceinline__ void runHeldRows(
            const ProductDecoder& decoder,
            const IvfWork& work,
            int numRows) {
        const auto read = [&](uint32_t column) {
            return HeldProductRows(
                    decoder,
                    params,
                    groupOf(work, column),
                    Reads::firstVector(),
                    numVectorsOf(work, column),
                    Reads::component());
        };
        HeldProductRows next = read(uint32_t(work.place.first));
        queries.convert(numRows, tables);
        __syncwarp();
        runGroups(work, numRows, [&](uint32_t column) {
            const HeldProductRows blocks = next;
            if (column + kIvfGroup < endOf(work)) {
                next = read(column + kIvfGroup);
            }
            return decodedOf().multiply(blocks, numVectorsOf(work, column));
        });
    }

    /// Of a tile, in columns of its list.
    __device__ __forceinline__ uint32_t endOf(const IvfWork& work) const {
        return min(
                uint32_t(work.place.first) + kIvfFewVectors,
                vectorsOfColumns(params, uint32_t(work.place.last)));
    }
    /// Where the vectors of a group of columns are.
    __device__ __forceinline__ TilePlace
    groupOf(const IvfWork& work, uint32_t column) const {
        TilePlace place = work.place;
        place.first = int64_t(kIvfGroup) *
                groupOfColumns(
                              params, column / kIvfGroup, uint32_t(place.last));
        return place;
    }
    __device__ __forceinline__ int numVectorsOf(
            const IvfWork& work,
            uint32_t column) const {
        const TilePlace place = groupOf(work, column);
        return int(min(place.last - place.first, int64_t(kIvfGroup)));
    }

    /// multiplyGroup(column): products of a group with the queries, what bounds
    /// have of its vectors, and returns their slack.
    template <class MultiplyGroup>
    __device__ __forceinline__ void runGroups(
            const IvfWork& work,
            int numRows,
            const MultiplyGroup& multiplyGroup) {
        float slack = 0; // greatest of the vectors'
#pragma unroll 1
        for (uint32_t column = uint32_t(work.place.first); column < endOf(work);
             column += kIvfGroup) {
            slack = fmaxf(slack, multiplyGroup(column));
            write(groupOf(work, column),
                  numVectorsOf(work, column),
                  column,
                  numRows);
        }
        if (params.isLower) {
            queries.widen(slack, numRows);
        }
    }

    /// Bounds of a group's vectors to the rows' columns; column: of its first
    /// vector in its list.
    __device__ __forceinline__ void write(
            const TilePlace& place,
            int numVectors,
            uint32_t column,
            int numRows) const {
        const uint32_t bits = selectedWord(
                                      params.lists,
                                      place.listNumber,
                                      uint32_t(place.first) / kIvfGroup) &
                ~0u >> (kIvfGroup - numVectors);
        const uint32_t wanted = bits >> Reads::firstVector() & 0xf;
        const int q = int(threadIdx.x) % 4 * 2;
        const int count = numVectors - Reads::firstVector();
        const uint32_t at = column + Reads::firstVector();
        const auto writeAs = [&]<bool kFours>() {
            products.template writeAll<kFours>(
                    params,
                    vectors,
                    queries.facts(),
                    q,
                    wanted,
                    at,
                    count,
                    numRows);
        };
        params.boundVectors > 1 ? writeAs.template operator()<true>()
                                : writeAs.template operator()<false>();
    }
};

} // namespace faiss_bits
