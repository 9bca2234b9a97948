#pragma once

#include <functional>
#include <utility>

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Who wants to go on as soon as a search is enqueued. Searches of inverted
/// lists wait for their device in the end, to see whether there are queries to
/// search again, which is rare: what comes after them can be enqueued before.
///
/// While it lives, the first search of inverted lists that this thread makes
/// calls f() when all is enqueued that it does if it has nothing to do again,
/// before it waits; and once more if it had, behind that: results of these
/// queries had no meaning until then. A search that cannot say when calls it
/// never.
class WhenEnqueued {
   public:
    explicit WhenEnqueued(std::function<void()> f)
            : f_(std::move(f)), outer_(std::exchange(current_, this)) {}
    ~WhenEnqueued() {
        current_ = outer_;
    }
    WhenEnqueued(const WhenEnqueued&) = delete;
    WhenEnqueued& operator=(const WhenEnqueued&) = delete;

    /// For the search: what it calls, once or twice. Of later ones, and where
    /// nobody asks: empty.
    static std::function<void()> take() {
        return current_ ? std::exchange(current_->f_, nullptr)
                        : std::function<void()>();
    }

   private:
    std::function<void()> f_;
    WhenEnqueued* outer_;
    static inline thread_local WhenEnqueued* current_ = nullptr;
};

} // namespace faiss_bits::gpu::detail
