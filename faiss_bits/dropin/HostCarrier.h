/// Pinned memory that results go through, and what they are copied with.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace faiss_bits::dropin {

/// Two pieces of pinned memory for one thread, and what it copies to them with.
/// Those of earlier calls are used again.
class HostCarrier {
   public:
    /// Large enough for the device's fastest copies, small enough that the
    /// first one, which nothing hides, is short. Not tuned.
    static constexpr size_t kPieceBytes = size_t(256) << 10;
    /// Up to here all lands in pinned memory before threads that wait for it
    /// share it out: 1.2 MB took 180 us by pieces of threads that sleep, of
    /// which each call of CUDA for a piece is some 10, and 140 us by one copy
    /// and one thread (H200).
    static constexpr size_t kMostTogether = size_t(4) << 20;
    /// The host copies what has landed of them while the rest comes.
    static constexpr int kChunks = 4;

    /// device: the current one.
    explicit HostCarrier(int device);
    ~HostCarrier();
    HostCarrier(const HostCarrier&) = delete;
    HostCarrier& operator=(const HostCarrier&) = delete;

    static int deviceOfThread();

    int device() const {
        return device_;
    }
    char* pinned(int slot) const {
        return parts_.pinned + size_t(slot) * kPieceBytes;
    }
    cudaStream_t stream() const {
        return parts_.stream;
    }
    cudaEvent_t copied(int slot) const {
        return parts_.copied[slot];
    }
    cudaEvent_t searched() const {
        return parts_.searched;
    }
    /// Room for kMostTogether bytes and a gap, made when it is first asked for.
    char* landing();
    cudaEvent_t landed(int chunk) const {
        return parts_.landed[chunk];
    }

   private:
    struct Parts {
        char* pinned = nullptr;
        cudaStream_t stream = nullptr;
        cudaEvent_t copied[2] = {};
        cudaEvent_t searched = nullptr;
        char* landing = nullptr;
        cudaEvent_t landed[kChunks] = {};
    };

    static Parts make();
    static std::mutex& mutex();
    static std::map<int, std::vector<Parts>>& kept(); // by device

    const int device_;
    Parts parts_;
};

} // namespace faiss_bits::dropin
