#pragma once

#include <Python.h>

#include <memory>
#include <stdexcept>

#include <faiss/impl/AuxIndexStructures.h>

/// Interrupts where the module `faiss` and our library hold a copy of FAISS
/// each (a FAISS that is a static library, as Debian's). Python sets its
/// callback in the copy of `faiss`; ours would never hear of Ctrl-C.
namespace faiss_bits::python {

/// Asks the FAISS of the module `faiss` whether to stop.
class InterruptBridge : public faiss::InterruptCallback {
   public:
    /// `check` is faiss.InterruptCallback.check. The reference to it is never
    /// given back, as this object may outlive the interpreter.
    explicit InterruptBridge(PyObject* check) : check_(check) {
        Py_INCREF(check);
    }

    bool want_interrupt() override {
        if (isTesting_) {
            wasAsked_ = true;
            return false;
        }
        if (!Py_IsInitialized()) {
            return false;
        }
        // What check() raises stays set in this thread, and is what the caller
        // in Python gets to see.
        const PyGILState_STATE state = PyGILState_Ensure();
        const bool goesOn = callCheck();
        PyGILState_Release(state);
        return !goesOn;
    }

    /// True if check() does not ask this object. Throws with Python's exception
    /// set if check() raises one. Needs the GIL.
    bool leadsElsewhere() {
        isTesting_ = true;
        const bool goesOn = callCheck();
        isTesting_ = false;
        if (!goesOn) {
            throw std::runtime_error("interrupted");
        }
        return !wasAsked_;
    }

   private:
    bool callCheck() {
        PyObject* result = PyObject_CallObject(check_, nullptr);
        Py_XDECREF(result);
        return result != nullptr;
    }

    PyObject* check_;
    bool isTesting_ = false, wasAsked_ = false;
};

/// Makes our copy of FAISS ask the one of the module `faiss`, whatever callback
/// is set there, if the two are not one and ours has no callback of its own.
inline void bridgeInterrupts(PyObject* check) {
    if (faiss::InterruptCallback::instance) {
        return;
    }
    const PyGILState_STATE state = PyGILState_Ensure();
    auto bridge = std::make_unique<InterruptBridge>(check);
    InterruptBridge* const asked = bridge.get();
    faiss::InterruptCallback::instance = std::move(bridge);
    bool keeps = false;
    try {
        keeps = asked->leadsElsewhere();
    } catch (...) {
        faiss::InterruptCallback::clear_instance();
        PyGILState_Release(state);
        throw;
    }
    // One copy, in which the user has cleared the callback: so it stays.
    if (!keeps) {
        faiss::InterruptCallback::clear_instance();
    }
    PyGILState_Release(state);
}

} // namespace faiss_bits::python
