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

} // namespace

CurrentDevice::CurrentDevice(int device) {
    BITS_CUDA_CHECK(cudaGetDevice(&before_));
    BITS_CUDA_CHECK(cudaSetDevice(device));
}

CurrentDevice::~CurrentDevice() {
    if (cudaSetDevice(before_) != cudaSuccess) {
        (void)cudaGetLastError();
    }
}

ManyDevices::ManyDevices(
        const DeviceList& list,
        const GpuIndexBitsManyConfig& config,
        const char* kind)
        : list_(list), kind_(kind) {
    FAISS_THROW_IF_NOT_FMT(
            list.size() >= 1 && list.size() <= kMostParts,
            "devices.size() = %zu is outside 1..%zu",
            list.size(),
            kMostParts);
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
    std::exception_ptr stopped;
    for (size_t task = 1; task < tasks.size(); ++task) {
        Worker& other = *workers_[task - 1]; // what runs there is this call's
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
    if (stopped) {
        std::rethrow_exception(stopped);
    }
    for (const std::exception_ptr& error : errors) {
        if (error) {
            std::rethrow_exception(error);
        }
    }
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
