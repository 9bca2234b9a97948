#include "faiss_bits/dropin/Messages.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <sstream>

namespace faiss_bits::dropin {

namespace {

Mode readMode() {
    const char* value = std::getenv("FAISS_BITS_DROPIN");
    std::istringstream words(value ? value : "");
    Mode mode;
    for (std::string word; std::getline(words, word, ',');) {
        if (word == "off") {
            mode.on = false;
        } else if (word == "select") {
            mode.searches = false;
        } else if (word == "log") {
            mode.log = true;
        } else if (!word.empty() && word != "on") {
            say("FAISS_BITS_DROPIN = '" + word +
                "' is none of on, off, select and log; it counts as on");
        }
    }
    return mode;
}

} // namespace

const Mode& mode() {
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
