/// Bounds of keys, L2 or minus the inner product, from products by tensor
/// cores: the canonical key is no less, or no more (IvfEstimateBound.h).
///
/// A block takes 256 vectors of a list, 32 a warp, and up to 512 of the queries
/// that probe it in tiles of 64.
///
/// Bound by (H200): the wait for instructions and for what is read, with four
/// warps a scheduler. A warp takes about 1,400 instructions for 64 queries with
/// d = 128: a quarter each to convert them, to multiply, to compare, and to
/// append what passes.
#pragma once

#include "kernels/ivf/IvfEstimateProducts.cuh"
#include "kernels/ivf/IvfFilter.cuh"
#include "kernels/ivf/IvfFoundBuffer.cuh"
#include "kernels/ivf/IvfQueryTiles.cuh"
#include "kernels/ivf/IvfVectorFragments.cuh"

namespace faiss_bits {

/// kAppend: lower bounds that are no greater than a row's limit are appended to
/// what the row has found; else bounds go to the row's columns.
template <Metric kMetric, class Vectors, class Shape, bool kAppend>
struct IvfEstimates {
    using Queries = IvfQueryTiles<kMetric, Shape, kAppend>;
    using Fragments = IvfVectorFragments<kMetric, Vectors, Shape::kDepth>;
    using Order = IvfTileOrder<kIvfItemQueries, Shape::kVectors>;
    using Shared = SharedTables<Vectors, Shape::kDepth>;
    static constexpr int kAcross = Shape::kAtATime / 8; // products of 8 queries
    using Products = IvfEstimateProducts<kMetric, Queries, Fragments, kAcross>;
    /// The warp that looks up the next item: it reads none of the tables.
    static constexpr int kScout = 4;
    static_assert(kScout * kWarpSize >= 128 && Shape::kThreads >= 256);

    struct SharedStorage {
        typename Queries::SharedStorage queries;
        IvfFoundBuffer::Storage found[Shape::kThreads / kWarpSize];
        typename Shared::Storage tables;
        // This item, and the next one, in turns.
        IvfWork works[2];
        uint32_t slacks[2]; // of the vectors, as a float that is not negative
    };

    SharedStorage& shared;
    const IvfParams& params;
    Queries queries{shared.queries, params};
    IvfFoundBuffer found{shared.found[threadIdx.x / kWarpSize], params};
    Fragments fragments;
    Products products;
    uint32_t wanted = 0;  // bits of this lane's four vectors
    uint32_t number = 0;  // of tiles, as they come
    bool hasNext = false; // item
    int turn = 0;         // of items

    __device__ __forceinline__ void run() {
        const Order order{params};
        const uint32_t items = order.numTiles();
        if (blockIdx.x >= items) {
            return;
        }
        lookUp(order, blockIdx.x, items, 0);
        __syncthreads();
        queries.look(shared.works[0], 0);
        queries.begin(shared.works[0], 0);
        if (threadIdx.x == 0) {
            shared.slacks[0] = 0;
        }
        for (uint32_t item = blockIdx.x; item < items; item += gridDim.x) {
            hasNext = items - item > gridDim.x;
            __syncthreads(); // what the item before had is read
            if (threadIdx.x == 0) {
                shared.slacks[turn ^ 1] = 0;
            }
            if (hasNext) {
                lookUp(order, item + gridDim.x, items, turn ^ 1);
            }
            runItem(shared.works[turn], shared.works[turn ^ 1]);
            turn ^= 1;
        }
        if constexpr (kAppend) {
            found.finish();
        }
    }

   private:
    /// By one warp; behind a barrier it is there.
    __device__ __forceinline__ void lookUp(
            const Order& order,
            uint32_t item,
            uint32_t items,
            int turn) {
        if (threadIdx.x / kWarpSize == kScout) {
            const IvfWork work = order.workOf(item, items);
            if (threadIdx.x % kWarpSize == 0) {
                shared.works[turn] = work;
            }
        }
    }

    /// Its first tile of queries is on its way; next: behind a barrier.
    __device__ __forceinline__ void runItem(
            const IvfWork& work,
            const IvfWork& next) {
        const Vectors vectors(params);
        TilePlace place = work.place;
        place.first += threadIdx.x / kWarpSize * Shape::kWarpVectors;
        if constexpr (!kAppend) {
            static_assert(Shape::kWarpVectors == kIvfGroup);
            place.first = int64_t(kIvfGroup) *
                    groupOfColumns(
                                  params,
                                  uint32_t(place.first) / kIvfGroup,
                                  uint32_t(place.last));
        }
        int numVectors = int(
                min(place.last - place.first, int64_t(Shape::kWarpVectors)));
        setWanted(place, numVectors);
        const ListTables<Vectors> listTables(vectors, work.place, params);
        if constexpr (Shape::kIsWhole) {
            const Shared tables(shared.tables);
            tables.read(listTables);
            __syncthreads();
            run(vectors, work, next, place, numVectors, tables);
        } else {
            __syncthreads();
            run(vectors, work, next, place, numVectors, listTables);
        }
    }

    /// Of a warp's vectors, numVectors from place.first on.
    template <class Tables>
    __device__ __forceinline__ void run(
            const Vectors& vectors,
            const IvfWork& work,
            const IvfWork& next,
            const TilePlace& place,
            int numVectors,
            const Tables& tables) {
        const bool isLower = kAppend || params.isLower;
        if constexpr (Shape::kIsWhole) {
            // No tile of this item is there yet.
            static_assert(
                    sizeof(shared.queries.halves) >= Fragments::kSlicesBytes);
            fragments.loadWhole(
                    vectors,
                    place,
                    numVectors,
                    params,
                    isLower,
                    tables,
                    reinterpret_cast<float*>(shared.queries.halves));
        } else {
            fragments.measure(
                    vectors, place, numVectors, params, isLower, tables);
        }
        if (isLower && numVectors > 0 && threadIdx.x % kWarpSize == 0) {
            atomicMax(&shared.slacks[turn], __float_as_uint(fragments.slack));
        }
        const int numRows =
                int(min(work.place.numRows, uint32_t(kIvfItemQueries)));
        const int numTiles = (numRows + Shape::kQueries - 1) / Shape::kQueries;
        int slot = 0;
        for (int tile = 0; tile < numTiles; ++tile, ++number) {
            const int rowsOfTile = numRows - tile * Shape::kQueries;
            // The next tile, or the next item's first one.
            const bool isOfItem = tile + 1 < numTiles;
            const bool isThere = isOfItem || hasNext;
            const IvfWork& of = isOfItem ? work : next;
            const int nextTile = isOfItem ? tile + 1 : 0;
            if (isThere) {
                queries.look(of, nextTile);
            }
            if constexpr (Shape::kIsWhole) {
                slot = number % 2;
                queries.convert(slot, slot, 0, rowsOfTile, tables);
                if (isThere) {
                    queries.begin(of, nextTile);
                }
                __syncthreads();
                if (isLower) {
                    widen(slot, rowsOfTile);
                }
#pragma unroll 1
                for (int first = 0;
                     first < min(rowsOfTile, Shape::kQueries) && numVectors > 0;
                     first += Shape::kAtATime) {
                    products.clear();
                    products.multiply(queries, fragments, slot, first);
                    finish(slot, first, work, place, numVectors, rowsOfTile);
                }
            } else {
                const int facts = number % 2;
                products.clear();
                for (int begin = 0; begin < params.d; begin += Shape::kDepth) {
                    slot ^= 1;
                    queries.convert(slot, facts, begin, rowsOfTile, tables);
                    if (begin + Shape::kDepth < params.d) {
                        queries.copy(begin + Shape::kDepth);
                    } else if (isThere) {
                        queries.begin(of, nextTile);
                    }
                    __syncthreads();
                    fragments.load(
                            vectors, place, numVectors, begin, params, tables);
                    products.multiply(queries, fragments, slot, 0);
                }
                if (isLower) {
                    widen(facts, rowsOfTile);
                }
                finish(facts, 0, work, place, numVectors, rowsOfTile);
            }
        }
    }

    /// Which of the warp's vectors are there, and selected; none is there where
    /// none can be found.
    __device__ __forceinline__ void setWanted(
            const TilePlace& place,
            int& numVectors) {
        uint32_t bits = 0;
        if (numVectors > 0) {
            bits = selectedWord(
                    params.lists,
                    place.listNumber,
                    uint32_t(place.first) / Shape::kWarpVectors);
            bits &= ~0u >> (Shape::kWarpVectors - numVectors);
        }
        if (kAppend && bits == 0) {
            numVectors = 0;
        }
        wanted = bits >> Fragments::firstVector() & 0xf;
    }

    /// The rows of a tile have pairs of this width; behind a barrier after the
    /// vectors are there.
    __device__ __forceinline__ void widen(int slot, int numRows) {
        const int q = int(threadIdx.x);
        if (q < min(numRows, Shape::kQueries)) {
            const auto& facts = shared.queries.facts[slot];
            const float width = ivf_estimate::widthOf<kMetric>(
                    __uint_as_float(shared.slacks[turn]),
                    facts.slacks[q],
                    facts.factors[q]);
            atomicMax(&params.widths[facts.rows[q]], __float_as_uint(width));
        }
    }

    /// Of queries `first` and on of a tile with numRows, in this lane's
    /// products: two of every eight, and four vectors.
    __device__ __forceinline__ void finish(
            int slot,
            int first,
            const IvfWork& work,
            const TilePlace& place,
            int numVectors,
            int numRows) {
        const auto& facts = shared.queries.facts[slot];
        const int q = first + int(threadIdx.x) % 4 * 2;
        const auto vector =
                uint32_t(place.first) + uint32_t(Fragments::firstVector());
        const int count = numVectors - Fragments::firstVector();
        if constexpr (kAppend) {
#pragma unroll
            for (int b = 0; b < kAcross; b += 2) {
                products.append(
                        found,
                        fragments,
                        facts,
                        b,
                        q + b * 8,
                        work,
                        wanted,
                        vector,
                        numRows);
            }
        } else {
            const uint32_t column = uint32_t(work.place.first) +
                    threadIdx.x / kWarpSize * Shape::kWarpVectors +
                    Fragments::firstVector();
            if (params.boundVectors > 1) {
                products.template writeAll<true>(
                        params,
                        fragments,
                        facts,
                        q,
                        wanted,
                        column,
                        count,
                        numRows);
            } else {
                products.template writeAll<false>(
                        params,
                        fragments,
                        facts,
                        q,
                        wanted,
                        column,
                        count,
                        numRows);
            }
        }
    }
};

} // namespace faiss_bits
