#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "faiss_bits/dropin/LoadedFaiss.h"

namespace faiss_bits::dropin {

/// One of FAISS's functions at work: runs on our kernels, or calls FAISS's own.
class Replacement {
   public:
    /// Enqueues on our kernels. Returns what the call is an example of, if it
    /// is one that is better left to FAISS, with nothing enqueued; else
    /// nothing. Throws when it cannot.
    using Work = std::function<std::string(const Original&)>;

    explicit Replacement(const Function& function) : function_(function) {}

    /// `F` is the function's type, `arguments` are those it was called with;
    /// refusal: why the call must go to FAISS, or an empty string. No fallback
    /// is silent: a line on stderr says why FAISS's own function was called;
    /// for what is left to it by choice, if the user wants to read that
    /// (Mode::log). Throws std::runtime_error when there is none to call.
    template <class F, class... Arguments>
    void call(
            const std::string& refusal,
            const Work& work,
            Arguments&&... arguments) {
        if (!runs(refusal, work)) {
            function<F>()(std::forward<Arguments>(arguments)...);
        }
    }

    /// Looked for once.
    const Original& original();

    /// True if `work` was done, and nothing is left to FAISS; else says why, as
    /// above.
    bool runs(std::string refusal, const Work& work);

    /// FAISS's own function, of type F. Throws std::runtime_error when there is
    /// none.
    template <class F>
    F* function() {
        return reinterpret_cast<F*>(originalOrThrow());
    }

   private:
    void* originalOrThrow();
    std::string label() const;

    const Function function_;
    std::once_flag found_;
    std::once_flag logged_;
    Original original_;
};

} // namespace faiss_bits::dropin
