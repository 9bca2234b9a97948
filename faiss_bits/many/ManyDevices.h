#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/many/DeviceList.h"

/// Where the parts of an index are, and who works there. Not part of the API.
namespace faiss_bits::gpu::detail {

class Worker;

/// Makes a device the current one, and throws where that fails; FAISS's
/// DeviceScope ends the process.
class CurrentDevice {
   public:
    explicit CurrentDevice(int device);
    ~CurrentDevice();
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;

   private:
    int device_;
    int before_ = 0;
};

/// Parts that one thread works for, on one device.
struct PartGroup {
    int device = 0;
    std::vector<int> parts; ///< ascending; the first one leads
    /// The first part of each resources object of the group: threads may work
    /// for these at the same time.
    std::vector<int> lanes;
};

/// Parts in groups, one a device, and a thread for each group but the first,
/// which is the calling thread's.
class ManyDevices {
   public:
    static constexpr size_t kMostParts = 64; ///< kMaxMergeLists

    /// kind  what a part is called in errors
    ManyDevices(
            const DeviceList& list,
            const GpuIndexBitsManyConfig& config,
            const char* kind);
    ~ManyDevices();

    int size() const {
        return int(list_.size());
    }
    const DevicePlace& operator[](int part) const {
        return list_[part];
    }
    /// What a part is called.
    const std::string& kind() const {
        return kind_;
    }
    const std::vector<PartGroup>& groups() const {
        return groups_;
    }
    int groupOf(int part) const {
        return groupOf_[part];
    }

    /// As contextOf: in the calling thread on CallStream's stream.
    GpuContext context(int part) const {
        return contextOf(*list_[part].resources, list_[part].device);
    }

    /// Calls f() with the part's device as the current one. What it throws
    /// leaves as a FaissException that names device and part.
    void onPart(int part, const std::function<void()>& f) const;

    /// Calls f(group) for every group, at the same time, and waits until all
    /// have returned. Then throws what the first of them threw. While it waits,
    /// mayStop, if it is there, is called every 20 ms, until it throws: then
    /// that is thrown in the end.
    void onGroups(
            const std::function<void(int group)>& f,
            const std::function<void()>& mayStop = nullptr) const;

    /// The same for so many lanes of each group, one or more: f(group, lane),
    /// each by a thread of its own.
    void onLanes(
            const std::vector<int>& lanes,
            const std::function<void(int group, int lane)>& f,
            const std::function<void()>& mayStop = nullptr) const;

    /// The threads of all groups but the first, at work before it is known what
    /// each has to do: a call has things to find out meanwhile. They are this
    /// object's until it ends.
    class Early {
       public:
        /// Each calls prepare(group), with its device as the current one, and
        /// then waits without sleep.
        Early(const ManyDevices& devices,
              std::function<void(int group)> prepare);
        /// Without run() nothing else is done.
        ~Early();
        Early(const Early&) = delete;
        Early& operator=(const Early&) = delete;

        /// onGroups(), once. Where a group's prepare() has thrown f(group) is
        /// not called.
        void run(
                const std::function<void(int group)>& f,
                const std::function<void()>& mayStop);

       private:
        enum class State { Waits, Runs, Ends };
        void work_(int group);

        const ManyDevices& devices_;
        const std::function<void(int group)> prepare_;
        const std::function<void(int group)>* f_ = nullptr;
        std::atomic<State> state_ = State::Waits;
        std::vector<std::exception_ptr> errors_; // of each group
    };

    /// onPart for every part, by the threads of their groups.
    void onEach(const std::function<void(int part)>& f) const;

    /// Waits for the streams of all parts, whatever they say.
    void waitForAll() const;

   private:
    /// Waits until the first so many workers are done. What mayStop threw, or
    /// null.
    std::exception_ptr waitForWorkers_(
            size_t count,
            const std::function<void()>& mayStop) const;

    DeviceList list_;
    std::string kind_;
    std::vector<PartGroup> groups_;
    std::vector<int> groupOf_;
    /// Of groups 1 and up; then of other lanes, made when they are needed.
    mutable std::vector<std::unique_ptr<Worker>> workers_;
};

} // namespace faiss_bits::gpu::detail
