// The k nearest of a direct search, of estimates of the keys of all columns of
// a row: what may be among them gets canonical keys, and these are sorted.
//
// Bound by: the wait for memory, some seven times one after another, three of
// them for every 128 components of 32 to 128 candidates.

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/ivf/IvfBoundedScans.h"
#include "kernels/ivf/IvfDirectFinish.cuh"
#include "kernels/ivf/IvfProductBound.h"
#include "kernels/knn/certified/JoinSlots.cuh"

namespace faiss_bits {

namespace {

template <Metric kMetric, ListLayout kLayout, int kThreads, int kRoom>
struct IvfBoundedFinish {
    using Finish = DirectFinish<kThreads, kRoom>;
    using SharedStorage = typename Finish::SharedStorage;
    using Codes =
            CodesOfVector<codeBitsOf(ListCoding::Product, kLayout), kLayout>;
    static constexpr uint32_t kEvery = kNanKey - 1; // key

    /// Which part of a vector has a component, and a row's component.
    struct Parts {
        const float* codebook;
        uint32_t dims;    // of a part
        uint32_t inverse; // 2^32 / dims, rounded up; 0: dims is 1
        int bits;

        __device__ __forceinline__ explicit Parts(const IvfParams& search)
                : codebook(search.lists.decoding.codebook),
                  dims(search.d / search.lists.decoding.numParts),
                  inverse(UINT32_MAX / dims + 1),
                  bits(search.lists.decoding.partBits) {}

        __device__ __forceinline__ uint32_t of(int c) const {
            static_assert(kMostSharedDims < 1 << 16); // else it is not exact
            const uint32_t part = __umulhi(uint32_t(c), inverse);
            return inverse != 0 ? part : uint32_t(c);
        }
        __device__ __forceinline__ float component(int c, uint32_t code) const {
            const uint32_t part = of(c);
            // A codebook has fewer than 2^32 numbers: 2^bits rows of d.
            return codebook[((part << bits) + code) * dims + c - part * dims];
        }
    };

    SharedStorage& shared;
    const IvfDirectParams& params;
    const uint32_t row;

    __device__ __forceinline__ void run() {
        Finish finish{shared, params, row};
        const uint32_t k = uint32_t(params.search.k);
        typename Finish::Least least;
        const uint32_t total = finish.begin(least);
        uint32_t limit = finish.findGroups(
                least, total, k, [&](uint32_t key) { return limitOf(key); });
        const uint32_t numGroups = shared.numGroups;
        const bool areListed = numGroups > kRoom;
        if (areListed) {
            finish.listGroups(total, limit);
        }
        finish.collect(areListed, numGroups, limit);
        if (shared.count > kRoom) {
            // The least of groups say little of few long groups.
            const auto forEach = [&](auto take) {
                finish.forKeys(
                        areListed,
                        numGroups,
                        limit,
                        [&](uint32_t key, uint32_t column) {
                            take(makeEntry(key, column));
                        });
            };
            const uint64_t last = typename Finish::Narrow{shared.narrow}.limit(
                    forEach, k, k + k / 8 + 8);
            limit = min(limit, limitOf(entryKey(last)));
            collectAgain(finish, areListed, numGroups, limit);
        }
        if (shared.count > kRoom) {
            scoreAll(shared, params, row, areListed, numGroups, limit);
        } else {
            score();
        }
        finish.write(shared.count, k);
    }

   private:
    /// Of a key that k estimates are not above.
    __device__ __forceinline__ uint32_t limitOf(uint32_t key) const {
        const ivf_product::Bound bound = {
                __uint_as_float(params.bounds[2 * row]),
                __uint_as_float(params.bounds[2 * row + 1])};
        const double from = double(keyValue(key));
        const float limit =
                __double2float_ru(ivf_product::limitOf<kMetric>(from, bound));
        // No number: some vector has no estimate, or no bound.
        return limit == limit ? min(orderedKey(limit), kEvery) : kEvery;
    }

    __device__ __forceinline__ static void collectAgain(
            Finish& finish,
            bool areListed,
            uint32_t numGroups,
            uint32_t limit) {
        __syncthreads(); // all have read the count
        if (threadIdx.x == 0) {
            finish.shared.count = 0;
        }
        __syncthreads();
        finish.collect(areListed, numGroups, limit);
    }

    /// The canonical keys of some columns that are there, by eight lanes, in
    /// all of them; by all lanes of the warp. Nothing but the loops branches,
    /// so that all codes are read in one wait and all rows in another.
    template <int kCount>
    __device__ __forceinline__ void keysOf(
            const uint32_t (&columns)[kCount],
            uint32_t (&keys)[kCount]) const {
        using Terms = canonical::Terms<kMetric>;
        static_assert(Terms::kSums == 1);
        constexpr int kAhead = 16; // components of each on their way
        const IvfParams& search = params.search;
        const ListDecoding& decoding = search.lists.decoding;
        const int lane = int(threadIdx.x % kPairLanes);
        const Parts parts(search);
        const auto codesOf = [&](uint32_t list, uint32_t vector) {
            return Codes(
                    search.lists.vectors[list],
                    vector,
                    decoding.numParts,
                    decoding.partBits);
        };
        uint32_t lists[kCount];
        uint32_t vectors[kCount];
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            const uint32_t probe =
                    Finish{shared, params, row}.probeOf(columns[i]);
            lists[i] = shared.lists[probe];
            vectors[i] = columns[i] - shared.first[probe];
        }
        const float* query = search.queries + int64_t(row) * search.d;
        double sums[kCount][1] = {};
        for (int begin = lane; begin < search.d; begin += kPairLanes * kAhead) {
            const auto at = [&](int j) {
                return min(begin + j * kPairLanes, search.d - 1);
            };
            float xs[kCount][kAhead];
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                const Codes codes = codesOf(lists[i], vectors[i]);
                uint32_t numbers[kAhead];
#pragma unroll
                for (int j = 0; j < kAhead; ++j) {
                    numbers[j] = codes(int(parts.of(at(j))));
                }
#pragma unroll
                for (int j = 0; j < kAhead; ++j) {
                    xs[i][j] = parts.component(at(j), numbers[j]);
                }
            }
            if (decoding.centroids) {
#pragma unroll
                for (int i = 0; i < kCount; ++i) {
                    const float* centroid =
                            decoding.centroids + int64_t(lists[i]) * search.d;
#pragma unroll
                    for (int j = 0; j < kAhead; ++j) {
                        xs[i][j] = __fadd_rn(xs[i][j], centroid[at(j)]);
                    }
                }
            }
            // Components beyond d are zeros, which no sum notices.
#pragma unroll
            for (int j = 0; j < kAhead; ++j) {
                const bool isThere = begin + j * kPairLanes < search.d;
                const float q = query[at(j)];
#pragma unroll
                for (int i = 0; i < kCount; ++i) {
                    Terms::add(
                            sums[i],
                            double(isThere ? xs[i][j] : 0.0f),
                            double(isThere ? q : 0.0f),
                            search.power);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            joinSlots<Terms>(sums[i]);
            keys[i] =
                    entryKey(distanceEntry<kMetric>(Terms::finish(sums[i]), 0));
        }
    }

    /// Of what was collected: keys, and ids.
    __device__ __forceinline__ void score() const {
        constexpr int kCount = 2;
        constexpr uint32_t kGroups = kThreads / kPairLanes;
        const Finish finish{shared, params, row};
        const uint32_t count = shared.count;
        const bool isFirst = threadIdx.x % kPairLanes == 0;
        for (uint32_t first = threadIdx.x / kPairLanes;
             first < (count + kGroups - 1) / kGroups * kGroups;
             first += kCount * kGroups) {
            uint32_t columns[kCount];
            uint32_t keys[kCount];
            bool isThere[kCount];
            int64_t ids[kCount] = {};
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                const uint32_t at = first + i * kGroups;
                isThere[i] = at < count;
                // The first column is there, where any is.
                columns[i] = isThere[i] ? shared.columns[at] : 0;
                if (isThere[i] && isFirst) {
                    ids[i] = finish.idOf(columns[i]);
                }
            }
            keysOf(columns, keys);
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                if (isThere[i] && isFirst) {
                    shared.keys[first + i * kGroups] = keys[i];
                    shared.ids[first + i * kGroups] = ids[i];
                }
            }
        }
        __syncthreads();
    }

    /// Whether the vectors of two columns have the same code of the same list,
    /// and so the same key.
    __device__ __forceinline__ bool haveSameCode(uint32_t a, uint32_t b) const {
        const Finish finish{shared, params, row};
        const uint32_t probeOfA = finish.probeOf(a);
        const uint32_t probeOfB = finish.probeOf(b);
        const uint32_t list = shared.lists[probeOfA];
        return list == shared.lists[probeOfB] &&
                haveSameCodes<Codes>(
                        params.search.lists,
                        list,
                        a - shared.first[probeOfA],
                        b - shared.first[probeOfB]);
    }

    /// More than there is room for: canonical keys take the places of all
    /// estimates up to the limit, and of these there are the lowest ids. Where
    /// so many are that near, many have the same code. Out of line, so that it
    /// costs the others no registers.
    __device__ static __noinline__ void scoreAll(
            SharedStorage& shared,
            const IvfDirectParams& params,
            uint32_t row,
            bool areListed,
            uint32_t numGroups,
            uint32_t limit) {
        const IvfBoundedFinish self{shared, params, row};
        Finish finish{shared, params, row};
        uint32_t* keys = params.keys + int64_t(row) * params.search.stride;
        const uint32_t lane = threadIdx.x % kWarpSize;
        // The column, estimate and key of the last vector that got a key.
        uint32_t last = 0;
        uint32_t lastEstimate = kNanKey;
        uint32_t lastKey = kNanKey;
        for (uint32_t g = threadIdx.x / kWarpSize; g < numGroups;
             g += kThreads / kWarpSize) {
            uint32_t* group = keys + finish.groupAt(areListed, g) * kListGroup;
            const uint32_t column = uint32_t(group - keys);
            const uint32_t estimate = group[lane];
            const bool isWanted = estimate <= limit;
            // The same estimate, and the same code: a key that is known, or
            // that of the first of these lanes.
            const bool isKnown = isWanted && estimate == lastEstimate &&
                    self.haveSameCode(column + lane, last);
            const uint32_t mine = isWanted && !isKnown ? estimate : kNanKey;
            uint32_t from = __ffs(__match_any_sync(kFullWarp, mine)) - 1;
            if (mine == kNanKey ||
                (from != lane &&
                 !self.haveSameCode(column + lane, column + from))) {
                from = lane;
            }
            const uint32_t scored =
                    __ballot_sync(kFullWarp, mine != kNanKey && from == lane);
            for (uint32_t rest = scored; rest != 0;) {
                uint32_t own = rest; // from the bit of these eight lanes on
                for (uint32_t i = 0; i < lane / kPairLanes; ++i) {
                    own &= own - 1;
                }
                const bool isThere = own != 0;
                const uint32_t at = isThere ? __ffs(own) - 1 : 0;
                uint32_t key[1];
                self.keysOf<1>({column + at}, key);
                if (isThere && lane % kPairLanes == 0) {
                    group[at] = key[0];
                }
                for (int i = 0; i < kWarpSize / kPairLanes; ++i) {
                    rest &= rest - 1;
                }
            }
            __syncwarp();
            const uint32_t key = !isWanted ? kNanKey
                    : isKnown              ? lastKey
                                           : group[from];
            __syncwarp();
            group[lane] = key;
            if (scored != 0) {
                const uint32_t first = __ffs(scored) - 1;
                last = column + first;
                lastEstimate = __shfl_sync(kFullWarp, estimate, first);
                lastKey = __shfl_sync(kFullWarp, key, first);
            }
        }
        collectAgain(finish, areListed, numGroups, kEvery);
        if (shared.count > kRoom) {
            Finish::collectCrowded(
                    shared, params, row, areListed, numGroups, kEvery);
        } else {
            finish.findIds();
        }
    }
};

/// A block a row.
template <Metric kMetric, ListLayout kLayout, int kThreads, int kRoom>
__global__ __launch_bounds__(kThreads) void boundedFinishKernel(
        const __grid_constant__ IvfDirectParams params) {
    using Finish = IvfBoundedFinish<kMetric, kLayout, kThreads, kRoom>;
    extern __shared__ __align__(16) uint8_t boundedFinishMemory[];
    allowNext();
    waitForPrevious();
    Finish{*reinterpret_cast<typename Finish::SharedStorage*>(
                   boundedFinishMemory),
           params,
           blockIdx.x}
            .run();
}

template <Metric kMetric, ListLayout kLayout, int kRoom, int kThreads>
void launch(const IvfDirectParams& params, cudaStream_t stream) {
    using Storage = typename DirectFinish<kThreads, kRoom>::SharedStorage;
    // Devices of fast float64, which alone search so, have 163 KiB and more.
    static_assert(sizeof(Storage) <= (163 << 10));
    const auto kernel = boundedFinishKernel<kMetric, kLayout, kThreads, kRoom>;
    launchAfterPrevious(
            kernel,
            dim3(params.search.rows),
            kThreads,
            allowSharedBytes(kernel, sizeof(Storage)),
            stream,
            params);
}

} // namespace

void launchIvfBoundedFinish(
        const IvfDirectParams& params,
        cudaStream_t stream) {
    // Of registers a multiprocessor has room for one block of 512 threads.
    constexpr uint32_t kManyRows = 1024;
    constexpr int kFew = ivfBoundedRoom(kMostFinishedK);
    constexpr int kMore = ivfBoundedRoom(kMostFinishedK + 1);
    constexpr int kMost = ivfBoundedRoom(kMostTableK);
    const auto ofMetric = [&]<ListLayout kLayout, int kRoom, int kThreads>() {
        const auto start = params.largest
                ? launch<Metric::InnerProduct, kLayout, kRoom, kThreads>
                : launch<Metric::L2, kLayout, kRoom, kThreads>;
        start(params, stream);
    };
    const bool areMany = params.search.rows >= kManyRows;
    const int room = ivfBoundedRoom(params.search.k);
    if (params.search.lists.layout == ListLayout::Interleaved) {
        // Few forms: none of these was timed.
        constexpr ListLayout kLayout = ListLayout::Interleaved;
        room == kMost ? ofMetric.template operator()<kLayout, kMost, 512>()
                : room == kFew && !areMany
                ? ofMetric.template operator()<kLayout, kFew, 512>()
                : ofMetric.template operator()<kLayout, kMore, 256>();
        return;
    }
    constexpr ListLayout kLayout = ListLayout::Rows;
    if (room == kMost) {
        ofMetric.template operator()<kLayout, kMost, 512>();
    } else if (room == kFew) {
        areMany ? ofMetric.template operator()<kLayout, kFew, 128>()
                : ofMetric.template operator()<kLayout, kFew, 512>();
    } else {
        areMany ? ofMetric.template operator()<kLayout, kMore, 256>()
                : ofMetric.template operator()<kLayout, kMore, 512>();
    }
}

} // namespace faiss_bits
