#pragma once

#include "kernels/words/ListOfClusters.h"
#include "kernels/words/Pivots.h"
#include "kernels/words/gpu/FoundBuffer.cuh"
#include "kernels/words/gpu/WordLaunch.h"

/// A block for every query, whose threads take the words in turn (Barrientos et
/// al. 2012, IV).
namespace faiss_bits::words {

constexpr int kScanWarps = 8;
constexpr uint32_t kScanThreads = kScanWarps * 32;

/// The block's query as bits of its letters; T of as many bits as it has
/// letters at least.
template <class T>
class ScannedQuery {
   public:
    __device__ ScannedQuery(const T* table, uint32_t length)
            : table_(table), length_(length) {}

    /// Brute force is the distance to every word.
    __device__ bool mayReach(uint32_t, uint32_t) const {
        return true;
    }

    /// Its distance from the word of a slot, `stride` apart letter by letter
    /// (Myers 1999, Hyyro 2003).
    __device__ uint32_t
    distance(const uint32_t* word, uint32_t stride, uint32_t wordLength) const {
        if (length_ == 0) {
            return wordLength;
        }
        T more = ~T(0), less = 0;
        for (uint32_t i = 0; i < wordLength; ++i) {
            const T same = table_[word[i * stride]];
            const T diagonal = (((same & more) + more) ^ more) | same | less;
            const T right = less | ~(more | diagonal);
            const T left = more & diagonal;
            const T shifted = right << 1 | T(1);
            more = left << 1 | ~(shifted | diagonal);
            less = shifted & diagonal;
        }
        const T rows = ~T(0) >> (8 * sizeof(T) - length_);
        if constexpr (sizeof(T) == sizeof(uint32_t)) {
            return wordLength + __popc(more & rows) - __popc(less & rows);
        } else {
            return wordLength + __popcll(more & rows) - __popcll(less & rows);
        }
    }

    /// Of the word in a slot of groups, for lanes that want it; by whole warps.
    __device__ uint32_t
    distance(const GroupParams& groups, uint32_t slot, bool isWanted) const {
        constexpr uint32_t kSize = WordGroups::kSize;
        if (!isWanted) {
            return 0;
        }
        return distance(
                groups.letters + groups.begins[slot / kSize] + slot % kSize,
                kSize,
                groups.lengths[slot]);
    }

   private:
    const T* table_;
    uint32_t length_;
};

/// Which words a method compares with a query.
enum class ScanMethod { All, Clusters, Pivots };

inline ScanMethod scanOf(Method method) {
    return method == Method::ListOfClusters ? ScanMethod::Clusters
            : method == Method::Sss         ? ScanMethod::Pivots
                                            : ScanMethod::All;
}

/// Bytes of shared memory beside the table.
inline __host__ __device__ size_t
scanSharedBytes(ScanMethod method, const ScanParams& p) {
    switch (method) {
        case ScanMethod::Clusters:
            return (p.numCenters + 31) / 32 * sizeof(uint32_t);
        case ScanMethod::Pivots:
            return p.numPivots * sizeof(uint16_t);
        default:
            return 0;
    }
}

/// What a block does for its query; All and Pivots with a part of the words,
/// blockIdx.y of gridDim.y. Scanned is a ScannedQuery or as one.
template <class Scanned>
class QueryScan {
   public:
    __device__ QueryScan(
            const ScanParams& params,
            const Scanned& scanned,
            void* shared,
            uint64_t* buffer,
            uint32_t query)
            : p(params),
              shared_(shared),
              query_(query),
              scanned_(scanned),
              buffer_(buffer, params) {}

    template <ScanMethod Method>
    __device__ void run(uint32_t& end) {
        if constexpr (Method == ScanMethod::Clusters) {
            clusters(end);
        } else if constexpr (Method == ScanMethod::Pivots) {
            pivots();
        } else {
            all();
        }
        finish();
    }

   private:
    __device__ void all() {
        compareAll(p.words, [](uint32_t) { return true; });
    }

    /// Marks the clusters that the query's ball meets, and compares what is in
    /// them; none behind the first whose ball holds the query's.
    __device__ void clusters(uint32_t& end) {
        auto* isMet = static_cast<uint32_t*>(shared_);
        if (threadIdx.x == 0) {
            end = p.numCenters;
        }
        __syncthreads();
        const uint32_t lane = threadIdx.x % 32;
        // Whole warps go on: they mark 32 clusters together.
        for (uint32_t i = threadIdx.x; i - lane < p.numCenters;
             i += kScanThreads) {
            const bool isCenter = i < p.numCenters;
            const uint32_t distance = scanned_.distance(p.centers, i, isCenter);
            bool meets = false;
            if (isCenter) {
                const uint64_t radius = p.radii[i];
                meets = distance <= radius + p.most;
                if (uint64_t(distance) + p.most < radius) {
                    atomicMin(&end, i + 1);
                }
            }
            add(isCenter && distance <= p.most, p.centers, i, distance);
            const uint32_t met = __ballot_sync(~0u, meets);
            if (lane == 0) {
                isMet[i / 32] = met;
            }
        }
        __syncthreads();
        constexpr uint32_t kBucket = ListOfClusters::kBucket;
        const uint32_t slots = end * kBucket;
        static_assert(kBucket == 32, "a warp takes a bucket");
        for (uint32_t slot = threadIdx.x; slot < slots; slot += kScanThreads) {
            const uint32_t cluster = slot / kBucket;
            if (isMet[cluster / 32] >> cluster % 32 & 1) {
                compare(p.buckets, slot);
            }
        }
    }

    /// Compares the words that no pivot tells apart from the query.
    __device__ void pivots() {
        auto* toQuery = static_cast<uint16_t*>(shared_);
        const uint32_t lane = threadIdx.x % 32;
        for (uint32_t i = threadIdx.x; i - lane < p.numPivots;
             i += kScanThreads) {
            const bool isPivot = i < p.numPivots;
            const uint32_t distance = scanned_.distance(p.pivots, i, isPivot);
            if (isPivot) {
                toQuery[i] = uint16_t(min(distance, 0xFFFFu));
            }
        }
        __syncthreads();
        constexpr uint32_t kBlock = faiss_bits::words::Pivots::kBlock;
        compareAll(p.words, [&](uint32_t place) {
            const uint16_t* toPivots = p.toPivots +
                    size_t(place / kBlock) * p.numPivots * kBlock +
                    place % kBlock;
            for (uint32_t i = 0; i < p.numPivots; ++i) {
                const int difference =
                        int(toPivots[size_t(i) * kBlock]) - int(toQuery[i]);
                if (uint32_t(abs(difference)) > p.most) {
                    return false;
                }
            }
            return true;
        });
    }

    __device__ void finish() {
        buffer_.flush();
        if (count_ > 0) {
            atomicAdd(p.counts + query_, count_);
        }
    }

    template <class Wanted>
    __device__ void compareAll(
            const GroupParams& groups,
            const Wanted& isWanted) {
        const uint32_t slots = groups.count * WordGroups::kSize;
        const uint32_t lane = threadIdx.x % 32;
        for (uint32_t slot = blockIdx.y * kScanThreads + threadIdx.x;
             slot - lane < slots;
             slot += gridDim.y * kScanThreads) {
            compare(groups, slot, slot < slots && isWanted(slot));
        }
    }

    /// By whole warps.
    __device__ void compare(
            const GroupParams& groups,
            uint32_t slot,
            bool isWanted = true) {
        isWanted = isWanted && groups.places[slot] != WordGroups::kNoWord &&
                scanned_.mayReach(groups.lengths[slot], p.most);
        const uint32_t distance = scanned_.distance(groups, slot, isWanted);
        add(isWanted && distance <= p.most, groups, slot, distance);
    }

    __device__ void add(
            bool has,
            const GroupParams& groups,
            uint32_t slot,
            uint32_t distance) {
        buffer_.add(
                has,
                has ? makeFound(groups.places[slot], distance, query_) : 0);
        count_ += has;
    }

    const ScanParams& p;
    void* shared_;
    uint32_t query_;
    Scanned scanned_;
    FoundBuffer buffer_;
    Count count_ = 0;
};

/// One block a query, or several (QueryScan); queries of kLongQuery letters are
/// left out. Shared memory: the table, then scanSharedBytes.
template <class T, ScanMethod Method>
__global__ void __launch_bounds__(kScanThreads)
        scanQueriesKernel(const __grid_constant__ ScanParams p) {
    extern __shared__ __align__(16) unsigned char scanShared[];
    __shared__ uint64_t buffers[kScanWarps][FoundBuffer::kSize];
    __shared__ uint32_t end;
    auto* table = reinterpret_cast<T*>(scanShared);
    const uint32_t query = blockIdx.x;
    const idx_t begin = p.begins[query];
    const auto length = uint32_t(p.begins[query + 1] - begin);
    if (length >= kLongQuery) {
        return;
    }
    for (uint32_t i = threadIdx.x; i < p.numLetters; i += kScanThreads) {
        table[i] = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (uint32_t i = 0; i < length; ++i) {
            const uint32_t letter = p.letters[begin + i];
            if (letter < p.numLetters) {
                table[letter] |= T(1) << i;
            }
        }
    }
    __syncthreads();
    QueryScan<ScannedQuery<T>> scan(
            p,
            {table, length},
            table + p.numLetters,
            buffers[threadIdx.x / 32],
            query);
    scan.template run<Method>(end);
}

} // namespace faiss_bits::words
