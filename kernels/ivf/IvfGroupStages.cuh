/// Groups of 32 vectors on their way to shared memory while earlier ones are
/// added up: what is in flight costs no registers, and is asked for without a
/// break, and no table but the first waits to be looked up.
#pragma once

#include "kernels/ivf/IvfDirectSums.cuh"
#include "kernels/ivf/IvfStagedParams.h"
#include "kernels/knn/certified/JoinSlots.cuh"

namespace faiss_bits {

/// The threads that scan groups together: all of a block, or a part of it.
template <ListCoding kCoding>
struct IvfTeam {
    static constexpr int kTeams = ivfTeamsOf(kCoding);

    __device__ __forceinline__ static uint32_t thread() {
        return kTeams == 1 ? threadIdx.x : threadIdx.x % kIvfDirectThreads;
    }
    __device__ __forceinline__ static uint32_t ofBlock() {
        return kTeams == 1 ? 0 : threadIdx.x / kIvfDirectThreads;
    }
    __device__ __forceinline__ static void sync() {
        if constexpr (kTeams == 1) {
            __syncthreads();
        } else {
            // Barrier 0 is the block's.
            asm volatile("bar.sync %0, %1;" ::"r"(ofBlock() + 1),
                         "n"(kIvfDirectThreads)
                         : "memory");
        }
    }
};

/// A stage has ivfStageDims components of a group, as they lie in the list, but
/// that 16 bytes are exchanged so that eight components of four vectors lie in
/// different banks; and behind them those of the list's centroid, where vectors
/// are residuals.
///
/// Eight lanes have a vector, one a slot of its sum (CanonicalPair.cuh), and a
/// warp four vectors.
template <ListCoding kCoding>
class IvfGroupStages {
   public:
    using Team = IvfTeam<kCoding>;
    static constexpr int kSlots = canonical::kSlots;

    /// memory: of this team, on sixteen bytes. steps, starts: those of a scalar
    /// coding, with some numbers behind the last component; codebook: of a
    /// product coding.
    __device__ __forceinline__ IvfGroupStages(
            uint8_t* memory,
            const IvfStagedParams& params,
            const float* steps,
            const float* starts,
            const float* codebook)
            : memory_(memory),
              params_(params),
              steps_(steps),
              starts_(starts),
              codebook_(codebook) {}

    __device__ __forceinline__ int count() const {
        return params_.stages;
    }

    /// Begins to copy components `begin` and on of a group of a list. There is
    /// one copy for every stage, if only an empty one.
    __device__ __forceinline__ void copy(
            const void* vectors, // of the list
            uint32_t list,
            uint32_t length, // of the list
            uint32_t group,
            int begin) {
        const int d = dims();
        const int count = min(d - begin, ivfStageDims(kCoding, d));
        const auto* bytes = static_cast<const uint8_t*>(vectors);
        if constexpr (kCoding != ListCoding::Product) {
            copyCodes(
                    bytes + (int64_t(group) * d + begin) * kRowBytes,
                    count * kRowBytes);
        } else {
            const int bytesOfGroup =
                    decoding().numParts * decoding().partBits * kListGroup / 8;
            // Rows end with the last vector.
            const uint32_t vectorsOfGroup = areRows()
                    ? min(length - group * kListGroup, uint32_t(kListGroup))
                    : kListGroup;
            copyCodes(
                    bytes + int64_t(group) * bytesOfGroup,
                    bytesOfGroup * int(vectorsOfGroup) / kListGroup);
        }
        if (areResiduals()) {
            const float* centroid =
                    decoding().centroids + int64_t(list) * d + begin;
            float* to = centroidOf(to_);
            for (int c = Team::thread(); c < count; c += kIvfDirectThreads) {
                asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(
                                     sharedAddressOf(to + c)),
                             "l"(centroid + c)
                             : "memory");
            }
        }
        copyNothing();
    }
    __device__ __forceinline__ void copyNothing() {
        asm volatile("cp.async.commit_group;" ::: "memory");
        to_ = after(to_);
    }

    /// Until the stage that is looked at has arrived for all threads, and all
    /// have left the one before, to which the next copy goes.
    __device__ __forceinline__ void wait() const {
        static_assert(IvfStagedPlan::kMostStages == 3);
        if (count() == 3) {
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        Team::sync();
    }

    __device__ __forceinline__ void next() {
        from_ = after(from_);
    }

    /// Adds the components that the stage has, `begin` and on, to the sums of
    /// this lane's slot of some queries, which lie `stride` apart, with zeros
    /// behind their last component.
    template <Metric kMetric, int kQueries, int kMost>
    __device__ __forceinline__ void add(
            int begin,
            const double* queries,
            int stride,
            double (&sums)[kMost]) const {
        const int d = dims();
        const int end = min(begin + ivfStageDims(kCoding, d), d);
        for (int first = begin; first < end; first += kIvfDirectDims) {
            if (end - first >= kIvfDirectDims) {
                addPart<kMetric, kQueries, true>(
                        begin, first, queries, stride, sums);
            } else {
                addPart<kMetric, kQueries, false>(
                        begin, first, queries, stride, sums);
            }
        }
    }

    /// The key of this lane's vector, of the sums of its slots.
    template <Metric kMetric>
    __device__ __forceinline__ static uint32_t keyOf(double sum) {
        using Terms = canonical::Terms<kMetric>;
        double sums[] = {sum};
        joinSlots<Terms>(sums);
        return entryKey(distanceEntry<kMetric>(Terms::finish(sums), 0));
    }

    /// This lane's key to those of a group.
    __device__ __forceinline__ static void put(
            uint32_t key,
            uint32_t (&keys)[kListGroup]) {
        if (threadIdx.x % kSlots == 0) {
            keys[Team::thread() / kSlots] = key;
        }
    }

   private:
    static_assert(kIvfDirectThreads == kListGroup * kSlots);
    static constexpr int kChunk = 16;
    static constexpr int kBits = codeBitsOf(kCoding, ListLayout::Interleaved);
    static constexpr int kRowBytes = kListGroup * kBits / 8; // of a component
    /// Chunks of a component that are exchanged.
    static constexpr int kChunks = kRowBytes > 0 && kRowBytes % kChunk == 0
            ? kRowBytes / kChunk
            : 1;
    static_assert(kSlots % kChunks == 0);

    __device__ __forceinline__ int dims() const {
        return params_.direct.search.d;
    }
    __device__ __forceinline__ const ListDecoding& decoding() const {
        return params_.direct.search.lists.decoding;
    }
    __device__ __forceinline__ bool areResiduals() const {
        return kCoding != ListCoding::Float32 && decoding().centroids;
    }
    __device__ __forceinline__ bool areRows() const {
        return params_.direct.search.lists.layout == ListLayout::Rows;
    }

    __device__ __forceinline__ int after(int stage) const {
        return stage + 1 == count() ? 0 : stage + 1;
    }
    __device__ __forceinline__ uint8_t* stage(int i) const {
        return memory_ + i * params_.stageBytes;
    }
    /// At the end of a stage.
    __device__ __forceinline__ float* centroidOf(int i) const {
        return reinterpret_cast<float*>(stage(i + 1)) -
                (ivfStageDims(kCoding, dims()) + 3) / 4 * 4;
    }
    __device__ __forceinline__ static uint32_t sharedAddressOf(const void* at) {
        return uint32_t(__cvta_generic_to_shared(at));
    }

    /// What is exchanged in the places of chunks of a component.
    __device__ __forceinline__ static int exchangeOf(int component) {
        return component / (kSlots / kChunks) % kChunks;
    }
    /// Where a byte of the codes is.
    __device__ __forceinline__ static int placeOf(int byte) {
        return kChunks > 1 ? byte ^ (exchangeOf(byte / kRowBytes) * kChunk)
                           : byte;
    }

    __device__ __forceinline__ void copyCodes(const uint8_t* codes, int bytes)
            const {
        uint8_t* to = stage(to_);
        const int thread = int(Team::thread());
        // A list need not begin on sixteen bytes.
        const int whole = reinterpret_cast<uintptr_t>(codes) % kChunk == 0
                ? bytes / kChunk * kChunk
                : 0;
#pragma unroll 4
        for (int i = thread * kChunk; i < whole;
             i += kIvfDirectThreads * kChunk) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                                 sharedAddressOf(to + placeOf(i))),
                         "l"(codes + i)
                         : "memory");
        }
        for (int i = whole + thread; i < bytes; i += kIvfDirectThreads) {
            to[placeOf(i)] = codes[i];
        }
    }

    /// Components first .. first + kIvfDirectDims - 1, of a stage that begins
    /// with `begin`.
    template <Metric kMetric, int kQueries, bool kWhole, int kMost>
    __device__ __forceinline__ void addPart(
            int begin,
            int first,
            const double* queries,
            int stride,
            double (&sums)[kMost]) const {
        using Terms = canonical::Terms<kMetric>;
        static_assert(Terms::kSums == 1 && kQueries <= kMost);
        const int d = dims();
        const int c = first + int(threadIdx.x % kSlots); // the slot's first
        // What would lie behind the last component is read before it.
        const int there = kWhole ? c : min(c, d - 1);
        const auto stepOf = [&](int i) {
            return (kWhole ? i : min(i, (d - 1 - there) / kSlots)) * kSlots;
        };
        const Codes codes(*this, there - begin);
        float xs[kIvfDirectAhead];
#pragma unroll
        for (int i = 0; i < kIvfDirectAhead; ++i) {
            xs[i] = codes(stepOf(i), there + stepOf(i));
        }
        if (areResiduals()) {
            const float* centroid = centroidOf(from_) + (there - begin);
#pragma unroll
            for (int i = 0; i < kIvfDirectAhead; ++i) {
                xs[i] = __fadd_rn(xs[i], centroid[stepOf(i)]);
            }
        }
#pragma unroll
        for (int i = 0; i < kIvfDirectAhead; ++i) {
            const int at = i * kSlots;
            // Components beyond d are zeros, which no sum notices.
            const double x = kWhole || c + at < d ? double(xs[i]) : 0.0;
#pragma unroll
            for (int q = 0; q < kQueries; ++q) {
                double one[] = {sums[q]};
                Terms::add(
                        one,
                        x,
                        queries[q * stride + c + at],
                        params_.direct.search.power);
                sums[q] = one[0];
            }
        }
    }

    /// Components of this lane's vector.
    struct Codes {
        const IvfGroupStages& stages;
        const uint8_t* from; // of the stage's component `offset`; Product: of
                             // its first part
        int shift = 0;       // of less than eight bits
        // Product.
        uint32_t bits = kBits;
        uint32_t partBytes = 0; // from the code of a part to the next
        uint32_t partDims = 1;
        uint32_t inverse = 0; // 2^32 / partDims, rounded up; of 1 there is none

        __device__ __forceinline__
        Codes(const IvfGroupStages& of, int offset)
                : stages(of), from(of.stage(of.from_)) {
            const uint32_t vector = Team::thread() / kSlots;
            if constexpr (kCoding == ListCoding::Product) {
                const uint32_t parts = uint32_t(of.decoding().numParts);
                bits = uint32_t(of.decoding().partBits);
                partDims = uint32_t(of.dims()) / parts;
                inverse = UINT32_MAX / partDims + 1;
                partBytes = of.areRows() ? 1 : bits * kListGroup / 8;
                if (of.areRows()) {
                    from += vector * parts;
                    return;
                }
            } else {
                from += offset * kRowBytes;
            }
            const uint32_t bit = vector * bits;
            shift = int(bit % 8);
            from += kChunks > 1
                    ? int(bit / 8) ^ (exchangeOf(offset) * kChunk)
                    : int(bit / 8);
        }

        /// Of component offset + at, which is component c of the vector; at is
        /// a multiple of kSlots.
        __device__ __forceinline__ float operator()(int at, int c) const {
            const uint8_t* code = from + at * kRowBytes;
            if constexpr (kCoding == ListCoding::Product) {
                // Exact for components below 2^32 / partDims.
                const uint32_t part = inverse == 0
                        ? uint32_t(c)
                        : __umulhi(uint32_t(c), inverse);
                const uint32_t row =
                        (part << bits) + numberAt(from + part * partBytes);
                return stages.codebook_
                        [row * partDims + (uint32_t(c) - part * partDims)];
            } else if constexpr (kCoding == ListCoding::Float32) {
                return *reinterpret_cast<const float*>(code);
            } else if constexpr (kCoding == ListCoding::Float16) {
                return __half2float(*reinterpret_cast<const __half*>(code));
            } else {
                return __fmaf_rn(
                        numberOf(numberAt(code)),
                        stages.steps_[c],
                        stages.starts_[c]);
            }
        }

       private:
        __device__ __forceinline__ uint32_t
        numberAt(const uint8_t* code) const {
            uint32_t number = code[0];
            if (bits < 8) {
                if (bits != 4) {
                    // Behind the last one there is something.
                    number |= uint32_t(code[1]) << 8;
                }
                number = number >> shift & ((1u << bits) - 1);
            }
            return number;
        }
    };

    uint8_t* memory_;
    const IvfStagedParams& params_;
    const float* steps_;
    const float* starts_;
    const float* codebook_;
    int to_ = 0;   // stage of the next copy
    int from_ = 0; // stage that is looked at
};

} // namespace faiss_bits
