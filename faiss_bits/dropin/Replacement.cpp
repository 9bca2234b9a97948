#include "faiss_bits/dropin/Replacement.h"

#include <stdexcept>

#include "faiss_bits/dropin/Messages.h"

namespace faiss_bits::dropin {

bool Replacement::runs(std::string why, const Work& work) {
    if (!mode().on || (function_.isSearch && !mode().searches)) {
        return false;
    }
    if (!original().unknown.empty()) {
        sayOnce(original().unknown);
        return false;
    }
    if (why.empty()) {
        try {
            const std::string left = work(original());
            if (!left.empty()) {
                if (mode().log) {
                    sayOnce(label() + " leaves to FAISS's own function " +
                            left);
                }
                return false;
            }
            if (mode().log) {
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
