#include "faiss_bits/dropin/HostCrew.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

#include "faiss_bits/common/HostParts.h"

namespace faiss_bits::dropin {

namespace {

/// Of a part on the host. Nobody makes pages while another one copies.
enum class Pages { Unknown, BeingMade, Done };

struct Part {
    char* to = nullptr;
    const char* from = nullptr;
    size_t bytes = 0;
    size_t needs = 0; // bytes that have to be there
    std::atomic<Pages> pages = Pages::Unknown;
};

size_t numParts(const std::vector<HostCrew::Array>& arrays) {
    size_t parts = 0;
    for (const auto& array : arrays) {
        parts +=
                (array.bytes + HostCrew::kPartBytes - 1) / HostCrew::kPartBytes;
    }
    return parts;
}

} // namespace

struct HostCrew::State {
    const int helpers;
    std::vector<Part> parts;
    std::atomic<size_t> arrived = 0; // SIZE_MAX: nothing comes any more
    std::atomic<size_t> taken = 0;   // of parts
    std::atomic<size_t> done = 0;    // likewise
    std::atomic<int> atWork = 0;     // helpers that may be at the arrays

    State(const char* first, const std::vector<Array>& arrays, int helpers)
            : helpers(helpers), parts(numParts(arrays)) {
        auto part = parts.begin();
        for (const Array& array : arrays) {
            for (size_t at = 0; at < array.bytes; at += kPartBytes, ++part) {
                part->to = array.to + at;
                part->from = array.from + at;
                part->bytes = std::min(kPartBytes, array.bytes - at);
                part->needs = size_t(part->from - first) + part->bytes;
            }
        }
    }

    /// The first one starts the others: the calling thread has other work.
    static void help(const std::shared_ptr<State>& state, int number) {
        for (int other = 1; number == 0 && other < state->helpers; ++other) {
            startHelper(state, other);
        }
        state->makePages(number);
        state->copyParts();
        --state->atWork;
    }

    static void startHelper(const std::shared_ptr<State>& state, int number) {
        ++state->atWork;
        try {
            std::thread([state, number] { help(state, number); }).detach();
        } catch (const std::exception&) {
            --state->atWork; // those that there are copy all
        }
    }

    void makePages(int number) {
        const size_t share = size_t(number);
        const size_t shares = size_t(helpers);
        for (size_t i = parts.size() * share / shares;
             i < parts.size() * (share + 1) / shares && arrived == 0;
             ++i) {
            Pages before = Pages::Unknown;
            if (parts[i].pages.compare_exchange_strong(
                        before, Pages::BeingMade)) {
                gpu::detail::makePages(parts[i].to, parts[i].bytes);
                parts[i].pages = Pages::Done;
            }
        }
    }

    void copyParts() {
        for (;;) {
            const size_t number = taken.fetch_add(1);
            if (number >= parts.size() || !waitFor(parts[number].needs)) {
                return;
            }
            copy(parts[number]);
            ++done;
        }
    }

    static void copy(Part& part) {
        Pages before = Pages::Unknown;
        if (!part.pages.compare_exchange_strong(before, Pages::Done)) {
            while (part.pages != Pages::Done) {
                std::this_thread::yield();
            }
        }
        std::memcpy(part.to, part.from, part.bytes);
    }

    /// False: nothing comes any more.
    bool waitFor(size_t bytes) const {
        using Clock = std::chrono::steady_clock;
        const auto until =
                Clock::now() + std::chrono::microseconds(kSpinMicroseconds);
        for (;;) {
            const size_t there = arrived;
            if (there >= bytes) {
                return there != SIZE_MAX;
            }
            if (Clock::now() < until) {
                std::this_thread::yield();
            } else {
                arrived.wait(there);
            }
        }
    }
};

HostCrew::HostCrew(
        const char* first,
        const std::vector<Array>& arrays,
        int helpers)
        : state_(std::make_shared<State>(first, arrays, helpers)) {}

HostCrew::~HostCrew() {
    state_->taken = state_->parts.size();
    arrived(SIZE_MAX);
    while (state_->atWork > 0) {
        std::this_thread::yield();
    }
}

void HostCrew::start() {
    if (!isStarted_ && state_->helpers > 0) {
        isStarted_ = true;
        State::startHelper(state_, 0);
    }
}

void HostCrew::arrived(size_t bytes) {
    state_->arrived = bytes;
    state_->arrived.notify_all();
}

void HostCrew::finish() {
    state_->copyParts();
    while (state_->done < state_->parts.size()) {
        std::this_thread::yield();
    }
}

} // namespace faiss_bits::dropin
