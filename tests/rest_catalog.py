"""A real REST catalog for the tests: the one of Apache Iceberg's own tests, from Maven, in Jetty, on a free port of the loopback.

It has no program of its own: Py4J's gateway is the process, and puts it together.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway

from firnline.settings import Settings
from tests.project import ROOT

ICEBERG, JETTY = "1.10.1", "11.0.25"
_SPARK = Path(pyspark.__file__).parent / "jars"
_MODULE = f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="firnline" module="rest-catalog"/>
  <dependencies>
    <dependency org="org.apache.iceberg" name="iceberg-core" rev="{ICEBERG}" conf="default->runtime,master">
      <artifact name="iceberg-core" type="jar" ext="jar"/>
      <artifact name="iceberg-core" type="test-jar" ext="jar" m:classifier="tests"/>
    </dependency>
    <dependency org="org.eclipse.jetty" name="jetty-servlet" rev="{JETTY}" conf="default->runtime,master"/>
  </dependencies>
</ivy-module>
"""


def _packages(settings: Settings) -> Path:
    """The server's jars, resolved once with the Ivy inside PySpark."""
    folder = settings.work / f"rest-catalog-{ICEBERG}"
    if not folder.exists():
        draft = settings.work / f"rest-catalog-{os.getpid()}"
        draft.mkdir(parents=True)
        (draft / "ivy.xml").write_text(_MODULE)
        what = ["-ivy", str(draft / "ivy.xml"), "-types", "jar", "bundle", "test-jar", "-warn"]
        where = ["-cache", str(draft / "ivy"), "-retrieve", f"{draft}/jars/[artifact](-[classifier])-[revision].[ext]"]
        ivy = next(_SPARK.glob("ivy-*.jar"))
        subprocess.run(["java", "-cp", str(ivy), "org.apache.ivy.Main", *what, *where], check=True, timeout=600)
        try:
            (draft / "jars").rename(folder)
        except OSError:
            assert folder.exists(), "somebody else was faster"
        shutil.rmtree(draft)
    return folder


@pytest.fixture(scope="session")
def rest_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Makes a catalog of its own whenever it is asked; its address."""
    settings, folder = Settings.load(ROOT), tmp_path_factory.mktemp("rest")
    jars = [_packages(settings) / "*", *settings.jars.glob("sqlite-jdbc-*.jar"), _SPARK / "*"]
    command = ["java", "-Xmx256m", "-cp", ":".join(map(str, jars)), "py4j.GatewayServer", "0"]
    said = folder / "said"
    with said.open("wb") as out:
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdout=out, stderr=out, start_new_session=True)
    try:
        while not (port := said.read_text().partition("\n")[0]) and process.poll() is None:
            time.sleep(0.1)
        if not port.isdigit():
            pytest.fail(f"the gateway did not start:\n{said.read_text()}", pytrace=False)
        parameters = GatewayParameters(port=int(port), auto_convert=True, enable_memory_management=False)
        java: Any = JavaGateway(gateway_parameters=parameters).jvm
        numbers = count()
        yield lambda: _served(java, folder / f"{next(numbers)}.db")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _served(java: Any, database: Path) -> str:
    """Put a server together that keeps its pointers in a file; its address."""
    catalog = java.org.apache.iceberg.jdbc.JdbcCatalog()
    catalog.setConf(java.org.apache.hadoop.conf.Configuration())
    kept = {"uri": f"jdbc:sqlite:{database}?busy_timeout=30000", "jdbc.schema-version": "V1"}
    catalog.initialize("lake", {**kept, "warehouse": f"file://{database}.elsewhere"})
    adapter = java.org.apache.iceberg.rest.RESTCatalogAdapter(catalog)
    holder = java.org.eclipse.jetty.servlet.ServletHolder(java.org.apache.iceberg.rest.RESTCatalogServlet(adapter))
    handler = java.org.eclipse.jetty.servlet.ServletContextHandler(0)
    handler.addServlet(holder, "/*")
    server = java.org.eclipse.jetty.server.Server(java.java.net.InetSocketAddress("127.0.0.1", 0))
    server.setHandler(handler)
    server.start()
    return f"http://127.0.0.1:{server.getURI().getPort()}"
