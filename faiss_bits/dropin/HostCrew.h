/// Threads that copy what arrives in pinned memory to pageable memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace faiss_bits::dropin {

/// Copies within the host, of bytes that arrive from the first one on. It knows
/// nothing of CUDA: whoever waits for the device says what is there.
///
/// Threads that sleep wake up late where the processor is a virtual one, so for
/// kSpinMicroseconds they look again and again; those that are made before the
/// device is done cost the calling thread nothing. Until something is there
/// they have the system make the pages that were never written to.
class HostCrew {
   public:
    static constexpr int kSpinMicroseconds = 2000;
    /// Of a part, which one thread copies.
    static constexpr size_t kPartBytes = size_t(64) << 10;

    /// `from` lies in memory that arrives as a whole.
    struct Array {
        char* to = nullptr;
        const char* from = nullptr;
        size_t bytes = 0;
    };

    /// first: the byte that arrives first; helpers: threads besides the
    /// calling one, none of which runs before start().
    HostCrew(const char* first, const std::vector<Array>& arrays, int helpers);
    /// What is not begun is not copied, and nobody is at the arrays any more.
    ~HostCrew();
    HostCrew(const HostCrew&) = delete;
    HostCrew& operator=(const HostCrew&) = delete;

    /// Once; where the system has no threads left, there are fewer.
    void start();
    /// So many bytes from the first one on are there.
    void arrived(size_t bytes);
    /// Behind arrived() of all: copies what is left, and waits for the rest.
    void finish();

   private:
    struct State;

    /// Threads go on for a moment when the crew is gone, and touch no more than
    /// this then.
    const std::shared_ptr<State> state_;
    bool isStarted_ = false;
};

} // namespace faiss_bits::dropin
