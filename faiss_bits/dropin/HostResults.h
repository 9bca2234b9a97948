/// Results of a search on their way from a device to the host.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "faiss_bits/dropin/Device.h"
#include "faiss_bits/dropin/HostCrew.h"
#include "kernels/common/Types.h"

namespace faiss_bits::dropin {

class HostCarrier;

/// Whether memory is the host's and known to no CUDA call: neither pinned, nor
/// managed, nor on a device. Throws Error when CUDA cannot tell.
bool isPageable(const void* memory);

/// Places on the device for the distances and ids of one search, which goHome()
/// copies to pageable memory of the host. FAISS by itself has the driver copy
/// them, to the device before the search and back after it, in one thread.
///
/// While the search runs other threads have the system make the pages that were
/// never written to. Then each copies pieces to pinned memory, and from there
/// to where they belong while the next piece comes. Fewer results land together
/// in pinned memory, from where a crew takes them; the fewest are one copy.
///
/// Device   the current one must be that of `stream`, in all calls
/// Stream   the memory on the device is taken and given back in the order of
///          `stream`
/// Memory   12 bytes a place on the device, from a pool of its own, which keeps
///          Scratch::kKeptBytes or what the largest call took; 512 KiB of
///          pinned memory, 4 MiB where results land together, and a stream for
///          each thread, kept for later calls
/// Errors   throws Error when a CUDA call fails, or memory lacks
class HostResults {
   public:
    /// distances, ids: [count] on the host; they keep what is in them until
    /// goHome().
    HostResults(
            const Device& device,
            size_t count,
            float* distances,
            idx_t* ids,
            cudaStream_t stream);
    /// Without goHome() nothing is copied.
    ~HostResults();
    HostResults(const HostResults&) = delete;
    HostResults& operator=(const HostResults&) = delete;

    /// On the device, [count].
    float* distances() const;
    idx_t* ids() const;

    /// Copies what the work on the stream up to now makes of them, and waits.
    void goHome();

    /// A search of this thread that writes such distances is enqueued: if they
    /// are on their way home from here, the host has time for what it takes to
    /// get ready. It may be left out.
    static void isUnderWay(const float* distances);

   private:
    /// Bytes that lie together on both sides.
    struct Piece {
        char* to = nullptr;
        const char* from = nullptr;
        size_t bytes = 0;
    };

    /// Of a piece on the host. Nobody makes pages while another one copies.
    enum class Pages { Unknown, BeingMade, Done };

    size_t bytes_() const;
    void copyAtOnce_();
    void landTogether_();
    void cut_(void* to, const void* from, size_t bytes);
    void help_(int number, int threads, std::shared_future<bool> mayCopy);
    void makePages_(int number, int threads);
    void waitForPages_(const Piece& piece);
    const Piece* takePiece_();
    void copyPieces_(const HostCarrier& carrier);
    void tryToCopyPieces_(const HostCarrier& carrier);

    const size_t count_;
    float* const hostDistances_;
    idx_t* const hostIds_;
    const cudaStream_t stream_;
    const Scratch memory_;
    const std::unique_ptr<HostCarrier> carrier_; // of the thread that searches

    // Of results that land together.
    std::optional<HostCrew> crew_;
    HostResults* outer_ = nullptr; // of this thread, of a search around this
    static thread_local HostResults* current_;

    // Of results that are cut into pieces.
    std::vector<Piece> pieces_;
    std::vector<std::atomic<Pages>> pages_; // of each of them
    std::atomic<size_t> taken_{0};          // of pieces_
    std::promise<bool> mayCopy_;            // false: nothing is to be copied
    std::future<void> helper_;              // which has started the others
};

} // namespace faiss_bits::dropin
