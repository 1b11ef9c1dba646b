# raises OctantsTypeError
import octants as oc


class Settings:
    pass


settings = Settings()


@oc.kernel
def f() -> int:
    return settings + 1


f()
