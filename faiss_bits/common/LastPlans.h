#pragma once

#include <cstddef>
#include <utility>
#include <vector>

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// The last plans of a thread, each with the problem that it was made for. A
/// thread that has waited for a device takes two or three times as long for the
/// same plan as one that makes it again and again.
template <class Problem, class Plan>
class LastPlans {
   public:
    /// What make(problem, maxBytes) gives, or gave for a problem that is
    /// alike(). Nothing is remembered where it throws.
    template <class Alike, class Make>
    Plan get(
            const Problem& problem,
            size_t maxBytes,
            const Alike& alike,
            const Make& make) {
        for (const Made& one : made_) {
            if (one.maxBytes == maxBytes && alike(one.problem, problem)) {
                return one.plan;
            }
        }
        Plan plan = make(problem, maxBytes);
        Made one = {problem, maxBytes, plan};
        if (made_.size() < kMost) {
            made_.push_back(std::move(one));
        } else {
            made_[next_] = std::move(one);
            next_ = (next_ + 1) % kMost;
        }
        return plan;
    }

   private:
    /// Replicas search slices of somewhat different sizes, call by call.
    static constexpr size_t kMost = 16;

    struct Made {
        Problem problem;
        size_t maxBytes;
        Plan plan;
    };

    std::vector<Made> made_;
    size_t next_ = 0; // to be replaced, when there are kMost
};

} // namespace faiss_bits::gpu::detail
