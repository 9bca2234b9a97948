#pragma once

#include "kernels/words/ListOfClusters.h"
#include "kernels/words/Pivots.h"
#include "kernels/words/gpu/FoundBuffer.cuh"

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

    /// Of the word in a slot of groups.
    __device__ uint32_t
    distance(const GroupParams& groups, uint32_t slot) const {
        constexpr uint32_t kSize = WordGroups::kSize;
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

/// Bytes of shared memory behind the table.
inline size_t scanSharedBytes(ScanMethod method, const ScanParams& p) {
    switch (method) {
        case ScanMethod::Clusters:
            return (p.numCenters + 31) / 32 * sizeof(uint32_t);
        case ScanMethod::Pivots:
            return p.numPivots * sizeof(uint16_t);
        default:
            return 0;
    }
}

/// What a block does for its query.
template <class T>
class QueryScan {
   public:
    __device__ QueryScan(
            const ScanParams& params,
            const T* table,
            void* shared,
            uint64_t* buffer,
            uint32_t query,
            uint32_t length)
            : p(params),
              shared_(shared),
              query_(query),
              scanned_(table, length),
              buffer_(buffer, params) {}

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
            uint32_t distance = 0;
            bool meets = false;
            if (isCenter) {
                distance = scanned_.distance(p.centers, i);
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
        for (uint32_t i = threadIdx.x; i < p.numPivots; i += kScanThreads) {
            toQuery[i] = uint16_t(min(scanned_.distance(p.pivots, i), 0xFFFFu));
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

   private:
    template <class Wanted>
    __device__ void compareAll(
            const GroupParams& groups,
            const Wanted& isWanted) {
        const uint32_t slots = groups.count * WordGroups::kSize;
        const uint32_t lane = threadIdx.x % 32;
        for (uint32_t slot = threadIdx.x; slot - lane < slots;
             slot += kScanThreads) {
            compare(groups, slot, slot < slots && isWanted(slot));
        }
    }

    /// By whole warps.
    __device__ void compare(
            const GroupParams& groups,
            uint32_t slot,
            bool isWanted = true) {
        isWanted = isWanted && groups.places[slot] != WordGroups::kNoWord;
        const uint32_t distance =
                isWanted ? scanned_.distance(groups, slot) : 0;
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
    ScannedQuery<T> scanned_;
    FoundBuffer buffer_;
    Count count_ = 0;
};

/// One block a query. Shared memory: the table, then scanSharedBytes.
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
    QueryScan<T> scan(
            p,
            table,
            table + p.numLetters,
            buffers[threadIdx.x / 32],
            query,
            length);
    if constexpr (Method == ScanMethod::Clusters) {
        scan.clusters(end);
    } else if constexpr (Method == ScanMethod::Pivots) {
        scan.pivots();
    } else {
        scan.all();
    }
    scan.finish();
}

} // namespace faiss_bits::words
