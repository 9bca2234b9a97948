/// What happens when the library is loaded, and what Python asks of it.

#include <cstdio>

#include "faiss_bits/dropin/LoadedFaiss.h"
#include "faiss_bits/dropin/Messages.h"

namespace faiss_bits::dropin {

namespace {

Finding inspectAndTell() {
    Finding finding = inspectLoadedFaiss();
    using State = Finding::State;
    const bool bad = finding.state == State::Unknown ||
            finding.state == State::Elsewhere || finding.lacksSome;
    const bool good = finding.state == State::Replaced;
    if (bad || (good && mode().log)) {
        sayOnce(finding.text);
    }
    return finding;
}

/// Linked or preloaded, FAISS is there by now; opened by Python, it comes
/// later, and Python asks then.
__attribute__((constructor)) void onLoad() {
    if (mode().on) {
        (void)inspectAndTell();
    }
}

} // namespace

} // namespace faiss_bits::dropin

/// For Python. Writes the text of a Finding in `size` bytes at most, and
/// returns the number of its state. tell: also say on stderr what a user of
/// the linked library would have read when the program started.
extern "C" __attribute__((visibility("default"))) int faissBitsDropinInspect(
        char* text,
        size_t size,
        int tell) {
    using namespace faiss_bits::dropin;
    const Finding finding = tell ? inspectAndTell() : inspectLoadedFaiss();
    std::snprintf(text, size, "%s", finding.text.c_str());
    return int(finding.state);
}
