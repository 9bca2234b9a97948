#include "faiss_bits/dropin/Replacement.h"

#include <stdexcept>

#include "faiss_bits/dropin/Messages.h"

namespace faiss_bits::dropin {

bool Replacement::runs(const Request& request, cudaStream_t stream) {
    if (mode() == Mode::Off) {
        return false;
    }
    if (original().unknownVersion) {
        sayOnce(unknownVersionText(original().library));
        return false;
    }
    std::string why = refusalOf(request);
    if (why.empty()) {
        try {
            select(request, stream);
            if (mode() == Mode::Log) {
                std::call_once(logged_, [this] {
                    say("replaced " + label() + " of " +
                        (original().address ? original().library
                                            : "no loaded FAISS"));
                });
            }
            return true;
        } catch (const std::exception& error) {
            why = error.what();
        }
    }
    sayOnce(label() + " goes to FAISS's own function: " + why);
    return false;
}

const Original& Replacement::original() {
    std::call_once(found_, [this] { original_ = findOriginal(function_); });
    return original_;
}

void* Replacement::originalOrThrow() {
    if (!original().address) {
        throw std::runtime_error(
                "faiss_bits dropin: " + label() +
                ": no loaded library has FAISS's own function");
    }
    return original().address;
}

std::string Replacement::label() const {
    return std::string(function_.name) + " (" + function_.types + ")";
}

} // namespace faiss_bits::dropin
