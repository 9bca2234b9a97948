#include "faiss_bits/many/ManyDevices.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/many/Worker.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Asks for a millisecond, as waitInterruptibly does: the threads of a call end
/// at about the same time, and one that sleeps takes long to wake.
bool isDoneSoon(const Worker& worker) {
    constexpr std::chrono::milliseconds kSpin(1);
    const auto end = std::chrono::steady_clock::now() + kSpin;
    do {
        if (worker.isDone()) {
            return true;
        }
        std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < end);
    return false;
}

/// Throws `stopped`, or else the first of the errors, if there is one.
void throwFirst(
        const std::exception_ptr& stopped,
        const std::vector<std::exception_ptr>& errors) {
    if (stopped) {
        std::rethrow_exception(stopped);
    }
    for (const std::exception_ptr& error : errors) {
        if (error) {
            std::rethrow_exception(error);
        }
    }
}

} // namespace

CurrentDevice::CurrentDevice(int device) : device_(device) {
    BITS_CUDA_CHECK(cudaGetDevice(&before_));
    if (before_ != device_) {
        BITS_CUDA_CHECK(cudaSetDevice(device_));
    }
}

CurrentDevice::~CurrentDevice() {
    if (before_ != device_ && cudaSetDevice(before_) != cudaSuccess) {
        (void)cudaGetLastError();
    }
}

ManyDevices::ManyDevices(
        const DeviceList& list,
        const GpuIndexBitsManyConfig& config,
        const char* kind)
        : list_(list), kind_(kind) {
    requireWithin(list.size(), 1, kMostParts, "devices.size()");
    for (int part = 0; part < size(); ++part) {
        int found = -1;
        for (int g = 0; g < int(groups_.size()) && found < 0; ++g) {
            const DevicePlace& lead = list_[groups_[g].parts[0]];
            // Resources serve one thread.
            const bool same = lead.device == list_[part].device &&
                    (config.joinSameDevice ||
                     lead.resources == list_[part].resources);
            found = same ? g : -1;
        }
        if (found < 0) {
            found = int(groups_.size());
            groups_.push_back({list_[part].device, {}, {}});
        }
        PartGroup& group = groups_[found];
        group.parts.push_back(part);
        const bool isNew = std::none_of(
                group.lanes.begin(), group.lanes.end(), [&](int lane) {
                    return list_[lane].resources == list_[part].resources;
                });
        if (isNew) {
            group.lanes.push_back(part);
        }
        groupOf_.push_back(found);
        onPart(part, [&] {
            list_[part].resources->initializeForDevice(list_[part].device);
        });
    }
    for (size_t g = 1; g < groups_.size(); ++g) {
        workers_.push_back(std::make_unique<Worker>());
    }
}

ManyDevices::~ManyDevices() = default;

void ManyDevices::onPart(int part, const std::function<void()>& f) const {
    try {
        const CurrentDevice scope(list_[part].device);
        f();
    } catch (const std::exception& error) {
        FAISS_THROW_FMT(
                "device %d (%s %d of %d): %s",
                list_[part].device,
                kind_.c_str(),
                part,
                size(),
                error.what());
    }
}

void ManyDevices::onGroups(
        const std::function<void(int group)>& f,
        const std::function<void()>& mayStop) const {
    onLanes(
            std::vector<int>(groups_.size(), 1),
            [&](int group, int) { f(group); },
            mayStop);
}

void ManyDevices::onLanes(
        const std::vector<int>& lanes,
        const std::function<void(int group, int lane)>& f,
        const std::function<void()>& mayStop) const {
    // The first is the calling thread's; those of groups are in front, so that
    // each has the same thread in every call.
    std::vector<std::pair<int, int>> tasks;
    for (int g = 0; g < int(groups_.size()); ++g) {
        tasks.push_back({g, 0});
    }
    for (int g = 0; g < int(groups_.size()); ++g) {
        for (int lane = 1; lane < lanes[g]; ++lane) {
            tasks.push_back({g, lane});
        }
    }
    while (workers_.size() + 1 < tasks.size()) {
        workers_.push_back(std::make_unique<Worker>());
    }
    std::vector<std::exception_ptr> errors(tasks.size());
    const auto run = [&](size_t task) {
        try {
            f(tasks[task].first, tasks[task].second);
        } catch (...) {
            errors[task] = std::current_exception();
        }
    };
    for (size_t task = 1; task < tasks.size(); ++task) {
        workers_[task - 1]->start([&run, task] { run(task); });
    }
    run(0);
    throwFirst(waitForWorkers_(tasks.size() - 1, mayStop), errors);
}

std::exception_ptr ManyDevices::waitForWorkers_(
        size_t count,
        const std::function<void()>& mayStop) const {
    std::exception_ptr stopped;
    for (size_t i = 0; i < count; ++i) {
        Worker& other = *workers_[i]; // what runs there is this call's
        bool isDone = isDoneSoon(other);
        while (!isDone) {
            isDone = other.waitFor(std::chrono::milliseconds(20));
            if (!isDone && mayStop && !stopped) {
                try {
                    mayStop();
                } catch (...) {
                    stopped = std::current_exception();
                }
            }
        }
    }
    return stopped;
}

ManyDevices::Early::Early(
        const ManyDevices& devices,
        std::function<void(int group)> prepare)
        : devices_(devices),
          prepare_(std::move(prepare)),
          errors_(devices.groups_.size()) {
    for (int group = 1; group < int(errors_.size()); ++group) {
        devices_.workers_[group - 1]->start([this, group] { work_(group); });
    }
}

void ManyDevices::Early::work_(int group) {
    try {
        // It stays the thread's, whose jobs are all of this device.
        BITS_CUDA_CHECK(cudaSetDevice(devices_.groups_[group].device));
        prepare_(group);
        State state = State::Waits;
        while ((state = state_.load(std::memory_order_acquire)) ==
               State::Waits) {
            std::this_thread::yield();
        }
        if (state == State::Runs) {
            (*f_)(group);
        }
    } catch (...) {
        errors_[group] = std::current_exception();
    }
}

ManyDevices::Early::~Early() {
    if (state_.load(std::memory_order_relaxed) == State::Waits) {
        state_.store(State::Ends, std::memory_order_release);
        (void)devices_.waitForWorkers_(errors_.size() - 1, nullptr);
    }
}

void ManyDevices::Early::run(
        const std::function<void(int group)>& f,
        const std::function<void()>& mayStop) {
    f_ = &f;
    state_.store(State::Runs, std::memory_order_release);
    try {
        f(0);
    } catch (...) {
        errors_[0] = std::current_exception();
    }
    throwFirst(devices_.waitForWorkers_(errors_.size() - 1, mayStop), errors_);
}

void ManyDevices::onEach(const std::function<void(int part)>& f) const {
    onGroups([&](int group) {
        for (int part : groups_[group].parts) {
            onPart(part, [&] { f(part); });
        }
    });
}

void ManyDevices::waitForAll() const {
    for (int part = 0; part < size(); ++part) {
        try {
            const CurrentDevice scope(list_[part].device);
            (void)cudaStreamSynchronize(context(part).stream);
        } catch (const std::exception&) {
            // Whoever waits here has an error of its own to report.
        }
        (void)cudaGetLastError();
    }
}

} // namespace faiss_bits::gpu::detail
