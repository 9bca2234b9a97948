/// What earlier searches found lists to be like.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>

#include "faiss_bits/dropin/ListLengths.h"

namespace faiss_bits::dropin {

/// Lists are known by where their lengths lie: other lists may lie there by
/// now, or these may have grown. So nobody may rely on it who does not find out
/// later (ListGuard).
class KnownLengths {
   public:
    /// Beyond, to remember lists would take much memory.
    static constexpr idx_t kMostLists = idx_t(1) << 18;

    /// Copies the lengths, on `stream`, which must not be under capture, and
    /// waits.
    KnownLengths(
            const IvfLists& lists,
            const ListLengths& found,
            cudaStream_t stream);
    /// Waits for the device.
    ~KnownLengths();
    KnownLengths(const KnownLengths&) = delete;
    KnownLengths& operator=(const KnownLengths&) = delete;

    /// As they were then, on the device.
    const void* lengths() const {
        return lengths_;
    }
    /// Without mostProbed.
    const ListLengths& found() const {
        return found_;
    }

    /// Whether it is worth to search before lengths are known, with so many
    /// probes a query. `most`: what a query may have then, a little more than
    /// one had so far.
    bool isTrusted(int nprobe, idx_t& most) const;
    /// A call has found the lists as they were, with so many vectors of a query
    /// at most.
    void confirm(int nprobe, idx_t mostProbed);

   private:
    void* lengths_ = nullptr;
    const ListLengths found_;
    mutable std::mutex mutex_;
    std::map<int, idx_t> mostProbed_; // by nprobe, of calls that confirmed it
};

/// Those of lists at this place on the current device, or nullptr. Safe from
/// several threads, as are the others.
std::shared_ptr<KnownLengths> knownLengthsOf(const IvfLists& lists);

/// What a call has found where nothing was known. Lengths are kept once two
/// calls in turn have found the same: lists that grow between searches cost
/// nothing. Some lists are known at a time, those that were used last; nothing
/// is kept where memory lacks.
void rememberLengths(
        const IvfLists& lists,
        const ListLengths& found,
        cudaStream_t stream);

/// They are not what they were.
void forgetLengths(const IvfLists& lists);

} // namespace faiss_bits::dropin
