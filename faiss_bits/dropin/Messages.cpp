#include "faiss_bits/dropin/Messages.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>

namespace faiss_bits::dropin {

namespace {

Mode readMode() {
    const char* value = std::getenv("FAISS_BITS_DROPIN");
    const std::string text = value ? value : "";
    if (text == "off") {
        return Mode::Off;
    }
    if (text == "log") {
        return Mode::Log;
    }
    if (!text.empty() && text != "on") {
        say("FAISS_BITS_DROPIN = '" + text +
            "' is none of on, off and log; it counts as on");
    }
    return Mode::On;
}

} // namespace

Mode mode() {
    static const Mode value = readMode();
    return value;
}

void say(const std::string& text) {
    std::fprintf(stderr, "faiss_bits dropin: %s\n", text.c_str());
}

void sayOnce(const std::string& text) {
    // Never destroyed: FAISS may search while the process ends.
    static auto& mutex = *new std::mutex;
    static auto& said = *new std::set<std::string>;
    const std::lock_guard<std::mutex> lock(mutex);
    if (said.insert(text).second) {
        say(text);
    }
}

} // namespace faiss_bits::dropin
