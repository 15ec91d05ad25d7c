"""For teachers who use nbgrader: it reads the course's own folders."""

c = get_config()  # noqa: F821 (nbgrader provides it)

c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
