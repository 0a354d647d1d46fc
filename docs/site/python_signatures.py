# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Sphinx extension: Python's signatures are shown as they are written in the source. autodoc would evaluate annotations, and
those of packages that are not imported (autodoc_mock_imports) then have other names; and a class that derives from one of
theirs would have no parameters."""

import ast
import inspect
import textwrap


def signature_of(function):
    """As text: parameters, and what is returned or None."""
    written = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    parameters = written.args
    if parameters.args and parameters.args[0].arg == "self":
        del parameters.args[0]
    return f"({ast.unparse(parameters)})", written.returns and ast.unparse(written.returns)


def _as_written(app, what, name, described, options, signature, returned):
    function = described.__init__ if what == "class" else described
    if not inspect.isfunction(function):
        return None
    parameters, returned = signature_of(function)
    return parameters, None if what == "class" else returned


def setup(app):
    app.connect("autodoc-process-signature", _as_written)
    return {"parallel_read_safe": True}
