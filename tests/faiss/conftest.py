"""A run in which every test was skipped has not passed."""


def pytest_sessionfinish(session, exitstatus):
    """It ends with 77, which ctest takes for skipped."""
    report = session.config.pluginmanager.get_plugin("terminalreporter")
    stats = report.stats if report else {}
    # 5: the skipped file held no test that could be listed.
    if exitstatus in (0, 5) and stats.get("skipped") and not stats.get("passed"):
        session.exitstatus = 77
