#pragma once

#include <mutex>
#include <utility>

#include "faiss_bits/dropin/LoadedFaiss.h"
#include "faiss_bits/dropin/Request.h"

namespace faiss_bits::dropin {

/// One of FAISS's functions at work: runs on our kernels, or calls FAISS's own.
class Replacement {
   public:
    explicit Replacement(const Function& function) : function_(function) {}

    /// `F` is the function's type, `arguments` are those it was called with.
    /// No fallback is silent: a line on stderr says why FAISS's own function
    /// was called. Throws std::runtime_error when there is none to call.
    template <class F, class... Arguments>
    void call(
            const Request& request,
            cudaStream_t stream,
            Arguments&&... arguments) {
        if (!runs(request, stream)) {
            auto* own = reinterpret_cast<F*>(originalOrThrow());
            own(std::forward<Arguments>(arguments)...);
        }
    }

   private:
    /// True if our kernels have taken the request.
    bool runs(const Request& request, cudaStream_t stream);
    const Original& original();
    void* originalOrThrow();
    std::string label() const;

    const Function function_;
    std::once_flag found_;
    std::once_flag logged_;
    Original original_;
};

} // namespace faiss_bits::dropin
